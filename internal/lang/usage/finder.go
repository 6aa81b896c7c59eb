// Package usage finds in a response what a request has cost, as the response passes through:
// in its headers, in a JSON body, or in the events of a stream.
//
// Start with [NewFinder]. It decides nothing: it tells a [tidegate.Visit] what it has found.
package usage

import (
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// Finder finds the true cost of a request in the response body, as that passes through.
type Finder struct {
	visit   *tidegate.Visit
	sources []source
}

// source is a field of the body.
type source struct {
	name string // "response.body.usage.total_tokens"
	path string // "usage.total_tokens"
	last string // "total_tokens"
}

// NewFinder returns a Finder for the costs that visit needs from the response body, nil if it needs
// none. visit may be nil.
func NewFinder(visit *tidegate.Visit) *Finder {
	var sources []source
	for _, name := range visit.Sources() {
		if path, ok := strings.CutPrefix(name, "response.body."); ok {
			sources = append(sources, source{name, path, path[strings.LastIndexByte(path, '.')+1:]})
		}
	}
	if sources == nil {
		return nil
	}
	return &Finder{visit, sources}
}

// FindInHeader tells visit the costs that it needs from the header of a response. visit may be nil.
func FindInHeader(visit *tidegate.Visit, h http.Header) {
	for _, source := range visit.Sources() {
		if name, ok := strings.CutPrefix(source, "response.header."); ok {
			if cost, ok := parseCost(h.Get(name)); ok {
				visit.Found(source, cost)
			}
		}
	}
}

// bodyScanner parses a body as it passes through.
type bodyScanner interface {
	scan(p []byte) // the next part of it
	end()          // there is no more
}

// Wrap returns the body of res, with a scanner if it is a stream of events or JSON that is not too
// long. A compressed body is not scanned.
func (s *Finder) Wrap(res *http.Response) io.ReadCloser {
	if coding := res.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return res.Body
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return &scannedBody{ReadCloser: res.Body, scanner: &eventScanner{inspect: s.inspect}}
	case (kind == "application/json" || strings.HasSuffix(kind, "+json")) && res.ContentLength <= maxDocument:
		return &scannedBody{ReadCloser: res.Body, scanner: &jsonScanner{inspect: s.inspect}}
	}
	return res.Body
}

// scannedBody shows its scanner what is read, and delays nothing.
type scannedBody struct {
	io.ReadCloser

	mu      sync.Mutex // it may be closed while it is read
	scanner bodyScanner
	ended   bool
}

func (b *scannedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.show(p[:n], err == io.EOF)
	return n, err
}

// Close tells the scanner that the body has ended: a JSON decoder may stop at the end of the
// document, before Read returns io.EOF.
func (b *scannedBody) Close() error {
	err := b.ReadCloser.Close()
	b.show(nil, true)
	return err
}

func (b *scannedBody) show(p []byte, end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.scanner.scan(p)
	if end {
		b.ended = true
		b.scanner.end()
	}
}

// inspect tells the visit the costs that a JSON text contains. In a stream the last one counts.
func (s *Finder) inspect(text []byte) {
	if !s.mentions(text) {
		return
	}
	v, ok := jsonvalue.Parse(text)
	if !ok {
		return
	}
	for _, src := range s.sources {
		if text, ok := v.Find(src.path).Text(); ok {
			if cost, ok := parseCost(text); ok {
				s.visit.Found(src.name, cost)
			}
		}
	}
}

// mentions reports whether text may contain a source, so that most events of a stream need
// no parsing. Names may be written with escapes.
func (s *Finder) mentions(text []byte) bool {
	t := string(text)
	for _, src := range s.sources {
		if strings.Contains(t, src.last) {
			return true
		}
	}
	return strings.Contains(t, `\u`)
}

// parseCost parses a number and rounds it up. Negative numbers are not believed.
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
