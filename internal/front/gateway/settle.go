package gateway

import (
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// settling finds the true cost of a request in the body of its answer, as that
// passes by.
type settling struct {
	visit   *tidegate.Visit
	sources []source
}

// source is a field of the body.
type source struct {
	name string // "response.body.usage.total_tokens"
	path string // "usage.total_tokens"
	last string // "total_tokens"
}

// newSettling returns nil where the body tells nothing that is asked for.
func newSettling(visit *tidegate.Visit) *settling {
	if visit == nil {
		return nil
	}
	s := &settling{visit: visit}
	for _, name := range visit.Sources() {
		if path, ok := strings.CutPrefix(name, "response.body."); ok {
			s.sources = append(s.sources, source{name, path, path[strings.LastIndexByte(path, '.')+1:]})
		}
	}
	return s
}

// reader looks at a body.
type reader interface {
	see(p []byte) // the next part of it
	end()         // there is no more
}

// watch returns the body of res, watched if there may be something to find.
func (s *settling) watch(res *http.Response) io.ReadCloser {
	if coding := res.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return res.Body
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return &watchedBody{res.Body, &events{look: s.look}}
	case (kind == "application/json" || strings.HasSuffix(kind, "+json")) && res.ContentLength <= maxDocument:
		return &watchedBody{res.Body, &document{look: s.look}}
	}
	return res.Body
}

// watchedBody shows what is read from it. Nothing waits for that.
type watchedBody struct {
	io.ReadCloser
	reader reader
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.reader.see(p[:n])
	if err == io.EOF {
		b.reader.end()
	}
	return n, err
}

// look tells the visit what a JSON text says. In a stream the last one counts.
func (s *settling) look(text []byte) {
	if !s.mentions(text) {
		return
	}
	v, ok := jsonvalue.Parse(text)
	if !ok {
		return
	}
	for _, src := range s.sources {
		if said, ok := v.Find(src.path).Text(); ok {
			if cost, ok := parseCost(said); ok {
				s.visit.Found(src.name, cost)
			}
		}
	}
}

// mentions spares most events of a stream the parsing. A name may be written
// with escapes.
func (s *settling) mentions(text []byte) bool {
	t := string(text)
	for _, src := range s.sources {
		if strings.Contains(t, src.last) {
			return true
		}
	}
	return strings.Contains(t, `\u`)
}

// parseCost takes whole numbers, and others as the next one above. What is
// negative is not believed.
func parseCost(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, n >= 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) {
		return 0, false
	}
	if f >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return int64(math.Ceil(f)), true
}
