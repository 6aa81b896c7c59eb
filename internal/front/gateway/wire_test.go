package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// wireRules are in force for all of testdata/wire.
const wireRules = `
version: 1
rules:
  - { name: limited, match: /limited, per: everyone, limits: 1/hour }
  - { name: denied,  match: /denied/, deny: true }
  - { name: tokens,  match: POST /tokens, per: everyone, limits: 10/hour, cost: { reserve: body.n, else: 1, min: 1, max: 100 } }
`

// wireCase is a file of testdata/wire: what is sent, and below ---- what comes
// of it. See testdata/wire/README.md.
type wireCase struct {
	send     []byte
	options  []string
	status   []int
	upstream []string // the request lines that it got
	saw      []string // lines among what it got
	unseen   []string // texts that it did not get
	answer   []string // lines among the answers
	silent   []string // texts that are not among the answers
}

var repeat = regexp.MustCompile(`\{(\d+) times ([^}]+)\}`)

func readWire(t *testing.T, name string) wireCase {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sent, wanted, ok := strings.Cut(string(raw), "\n----\n")
	if !ok {
		t.Fatal("no ---- line")
	}
	var c wireCase
	for line := range strings.Lines(sent) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = repeat.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(s string) string {
			m := repeat.FindStringSubmatch(s)
			n, _ := strconv.Atoi(m[1])
			return strings.Repeat(m[2], n)
		})
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		c.send = append(c.send, text...)
	}
	for line := range strings.Lines(wanted) {
		c.expect(t, strings.TrimSuffix(line, "\n"))
	}
	return c
}

func (c *wireCase) expect(t *testing.T, line string) {
	t.Helper()
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "options":
		c.options = strings.Fields(value)
	case "status":
		for _, s := range strings.Fields(value) {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			c.status = append(c.status, n)
		}
	case "upstream":
		if value != "no" {
			c.upstream = append(c.upstream, value)
		}
	case "saw":
		c.saw = append(c.saw, value)
	case "unseen":
		c.unseen = append(c.unseen, value)
	case "answer":
		c.answer = append(c.answer, value)
	case "silent":
		c.silent = append(c.silent, value)
	default:
		t.Fatalf("unknown expectation %q", line)
	}
}

// recorder is an upstream that keeps every byte it got, and what it took for
// whole requests.
type recorder struct {
	mu       sync.Mutex
	raw      bytes.Buffer
	requests []string
}

type recordingListener struct {
	net.Listener
	to *recorder
}

type recordingConn struct {
	net.Conn
	to *recorder
}

func (l recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return recordingConn{c, l.to}, nil
}

func (c recordingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.raw.Write(p[:n])
	return n, err
}

func (r *recorder) got() (raw string, requests []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw.String(), slices.Clone(r.requests)
}

func record(t *testing.T, h http.HandlerFunc) (*recorder, *url.URL) {
	t.Helper()
	r := new(recorder)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		r.requests = append(r.requests, req.Method+" "+req.RequestURI)
		r.mu.Unlock()
		h(w, req)
	}))
	s.Listener = recordingListener{s.Listener, r}
	s.Config.DisableGeneralOptionsHandler = true
	s.Start()
	t.Cleanup(s.Close)
	return r, parseURL(t, s.URL)
}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s body %q trailer %v\n", r.Method, r.RequestURI, body, r.Trailer)
}

func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 45 {
		t.Errorf("%d files, want at least 45", len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			readWire(t, name).run(t)
		})
	}
}

func (c wireCase) run(t *testing.T) {
	upstream, u := record(t, echo)
	o := Options{
		Gate: gateOf(t, wireRules), Upstreams: []*url.URL{u},
		Limits: Limits{HeaderBytes: 8 << 10, HeaderLines: 50, URI: 2 << 10, Body: 10 << 10},
	}
	for _, option := range c.options {
		switch option {
		case "trusted":
			o.HTTP.ClientIP.Trusted = []netip.Prefix{loopback}
		case "clean":
			o.Paths.CleanDots = true
		case "merge":
			o.Paths.MergeSlashes = true
		case "slash":
			o.Paths.EncodedSlash = true
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	got, statuses := c.talk(t, start(t, o, nil).addr)
	saw, requests := upstream.got()
	if !slices.Equal(statuses, c.status) {
		t.Errorf("status %v, want %v", statuses, c.status)
	}
	if !slices.Equal(requests, c.upstream) {
		t.Errorf("upstream got %q, want %q", requests, c.upstream)
	}
	for _, line := range c.saw {
		if !strings.Contains("\n"+saw, "\n"+line+"\r\n") {
			t.Errorf("upstream did not get %q", line)
		}
	}
	for _, text := range c.unseen {
		if strings.Contains(strings.ToLower(saw), strings.ToLower(text)) {
			t.Errorf("upstream got %q", text)
		}
	}
	for _, line := range c.answer {
		if !strings.Contains("\n"+strings.ReplaceAll(got, "\r\n", "\n"), "\n"+line+"\n") {
			t.Errorf("no line %q in the answer", line)
		}
	}
	for _, text := range c.silent {
		if strings.Contains(got, text) {
			t.Errorf("the answer has %q", text)
		}
	}
	if t.Failed() {
		t.Logf("sent %q\nanswer:\n%s\nupstream got:\n%s", clip(c.send), got, saw)
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 400)] }

// talk sends, and reads answers until all that are expected are there. Then it
// ends its side, to see that nothing more comes.
func (c wireCase) talk(t *testing.T, addr string) (text string, statuses []int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(c.send); err != nil {
		t.Logf("write: %v", err) // it was refused before all was sent
	}
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &raw))
	for i := 0; ; i++ {
		if i == len(c.status) {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Logf("read: %v", err)
			}
			return raw.String(), statuses
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Logf("body: %v", err)
		}
		statuses = append(statuses, res.StatusCode)
	}
}
