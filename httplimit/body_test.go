package httplimit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"tidegate.dev/tidegate"
)

// asks is a gate whose rules ask for values and limit nothing; what they found is
// sent to the client in the header Found, before whatever the handler does.
func asks(next http.Handler, names ...string) http.Handler {
	found := make(chan string, 1)
	gate := tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
		var all []string
		for _, name := range names {
			value, _ := r.Value(name)
			all = append(all, value)
		}
		found <- strings.Join(all, "|")
		return dst
	}), &script{})
	return Gate(gate)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Found", <-found)
		next.ServeHTTP(w, r)
	}))
}

// echo gives back the body, and tells what the handler saw of its length.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Length", fmt.Sprint(r.ContentLength, r.GetBody != nil))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Header().Set("Failed", err.Error())
	}
	_, _ = w.Write(body)
})

// answer is what a client got from asks and echo.
type answer struct{ found, length, body string }

func send(t *testing.T, srv *httptest.Server, contentType string, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.Header.Get("Found"), res.Header.Get("Length"), string(text)}
}

// jsonOf is an object of size bytes with {"a":{"b":"x"}} in front.
func jsonOf(size int) string {
	const start, end = `{"a":{"b":"x"},"pad":"`, `"}`
	return start + strings.Repeat("y", size-len(start)-len(end)) + end
}

func TestBodyValuesAndTheHandlerGetsEveryByte(t *testing.T) {
	h := asks(echo, "body.a.b", "body.n", "body.gone")
	http1, http2 := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	defer http1.Close()
	http2.EnableHTTP2 = true
	http2.StartTLS()
	defer http2.Close()

	f := func(name, contentType, body, want string) {
		t.Helper()
		for _, srv := range []*httptest.Server{http1, http2} {
			// Whole, with a length; then in chunks of unknown length.
			whole := send(t, srv, contentType, strings.NewReader(body))
			if length := fmt.Sprint(len(body), false); whole != (answer{want, length, body}) {
				t.Errorf("%s: found %q, want %q; length %s, want %s; same body %v", name, whole.found, want, whole.length, length, whole.body == body)
			}
			chunked := send(t, srv, contentType, io.MultiReader(iotest.HalfReader(strings.NewReader(body)), strings.NewReader("")))
			if chunked != (answer{want, "-1 false", body}) {
				t.Errorf("%s in chunks: found %q, want %q; length %s; same body %v", name, chunked.found, want, chunked.length, chunked.body == body)
			}
		}
	}
	const js = "application/json"
	f("nested", js, `{"a":{"b":"x"},"n":42}`, "x|42|")
	f("parameters", "application/json; charset=utf-8", `{"n":1}`, "|1|")
	f("upper case", "Application/JSON", `{"n":1}`, "|1|")
	f("suffix", "application/vnd.api+json", `{"n":1}`, "|1|")
	f("duplicates", js, `{"n":1,"n":2}`, "||")
	f("duplicates that say the same", js, `{"n":1,"n":1.0}`, "|1|")
	f("number", js, `{"n":1.0e3,"a":{"b":true}}`, "true|1000|")
	f("space around", js, " \n{\"n\":1}\r\n", "|1|")
	f("array and null", js, `{"n":[1],"a":{"b":null}}`, "||")
	f("not an object", js, `[{"n":1}]`, "||")
	f("not JSON", js, `n=1`, "||")
	f("two texts", js, `{"n":1}{"n":2}`, "||")
	f("cut", js, `{"n":1,`, "||")
	f("deep", js, strings.Repeat(`{"a":`, 12_000), "||")
	f("form", "application/x-www-form-urlencoded", `{"n":1}`, "||")
	f("text", "text/plain", `{"n":1}`, "||")
	f("no type", "", `{"n":1}`, "||")
	f("stream of objects", "application/json-seq", `{"n":1}`, "||")
	f("just short enough", js, jsonOf(maxBody), "x||")
	f("a byte longer", js, jsonOf(maxBody+1), "||")
	f("a lot longer", js, jsonOf(1<<20), "||")
	f("whole before the bound", js, `{"n":1}`+strings.Repeat(" ", maxBody), "||")

	if got := send(t, http1, js, nil); got != (answer{"||", "0 false", ""}) {
		t.Errorf("without a body: %+v", got)
	}
}

// The handler is served while the client still sends what is beyond the bound.
func TestLongBodyStreams(t *testing.T) {
	arrived := make(chan string)
	srv := httptest.NewServer(asks(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.ReadFull(r.Body, make([]byte, maxBody+1))
		arrived <- fmt.Sprint(n, err)
		_, _ = io.Copy(w, r.Body)
	}), "body.a.b"))
	defer srv.Close()
	body, client := io.Pipe()
	text := jsonOf(maxBody + 1)
	go func() {
		defer client.Close()
		_, _ = io.WriteString(client, text)
		if got, want := <-arrived, fmt.Sprint(len(text), nil); got != want {
			t.Errorf("head %s, want %s", got, want)
		}
		_, _ = io.WriteString(client, "the rest")
	}()
	if got := send(t, srv, "application/json", body); got.found != "" || got.body != "the rest" {
		t.Errorf("found %q, tail %q", got.found, got.body)
	}
}

// A client that leaves in the middle: the handler gets what came, and the error.
func TestBodyThatFailsMidway(t *testing.T) {
	seen := make(chan string, 1)
	srv := httptest.NewServer(asks(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		_, again := r.Body.Read(make([]byte, 1))
		seen <- fmt.Sprintf("%q %q %v %v", w.Header().Get("Found"), body, err, again)
	}), "body.n"))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"n\":1}")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got, want := <-seen, `"" "{\"n\":1}" unexpected EOF unexpected EOF`; got != want {
		t.Errorf("the handler saw %s, want %s", got, want)
	}
	_ = conn.Close()
}

func TestExpectContinue(t *testing.T) {
	srv := httptest.NewServer(asks(echo, "body.n"))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = in.ReadString('\n')
	_, _ = io.WriteString(conn, `{"n":1}`)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.Header.Get("Found") != "1" || string(body) != `{"n":1}` {
		t.Errorf("found %q, body %q", res.Header.Get("Found"), body)
	}
}

// The body of a refused request is out of the way of the next one.
func TestRefusedAfterALookIntoTheBody(t *testing.T) {
	limit := tidegate.PerMinute(1)
	gate := tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
		key, _ := r.Value("body.a.b")
		return append(dst, tidegate.Check{Key: key, Limit: limit, Cost: 1})
	}), &script{decisions: []tidegate.Decision{{}}})
	srv := httptest.NewServer(Gate(gate)(hello))
	defer srv.Close()
	var reused []bool
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = append(reused, c.Reused) }}
	for _, size := range []int{100, maxBody, 2 * maxBody} {
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, srv.URL,
			io.MultiReader(strings.NewReader(jsonOf(size))))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%d bytes: status %d", size, res.StatusCode)
		}
	}
	if want := []bool{false, true, true}; !slices.Equal(reused, want) {
		t.Errorf("connections reused: %v, want %v", reused, want)
	}
}

// bodyOf counts what is asked of a body.
type bodyOf struct {
	io.Reader
	reads, closes int
}

func (b *bodyOf) Read(p []byte) (int, error) {
	b.reads++
	return b.Reader.Read(p)
}

func (b *bodyOf) Close() error {
	b.closes++
	return errors.New("closed")
}

func TestBodyIsReadOnlyWhenAsked(t *testing.T) {
	f := func(contentType string, length int64, names []string, wantReads bool) {
		t.Helper()
		body := &bodyOf{Reader: strings.NewReader(`{"n":1}`)}
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.Header.Set("Content-Type", contentType)
		r.ContentLength = length
		asks(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if (r.Body == io.ReadCloser(body)) == wantReads {
				t.Errorf("%s, %q: the body is %T", contentType, names, r.Body)
			}
		}), names...).ServeHTTP(httptest.NewRecorder(), r)
		if body.reads > 0 != wantReads || body.closes > 0 {
			t.Errorf("%s, %q: %d reads, %d closes", contentType, names, body.reads, body.closes)
		}
	}
	const js = "application/json"
	f(js, -1, nil, false)
	f(js, -1, []string{"ip", "client header Body", "query body.n", "body"}, false)
	f(js, -1, []string{"body.n"}, true)
	f(js, maxBody, []string{"body.n"}, true)
	f(js, maxBody+1, []string{"body.n"}, false)
	f("text/plain", -1, []string{"body.n"}, false)
}

func TestBodyIsReadOnceByTwoGates(t *testing.T) {
	body := &bodyOf{Reader: strings.NewReader(`{"n":1,"m":2}`)}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/json")
	h := asks(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := r.Body
		asks(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Body != first {
				t.Error("the second gate put another body in place")
			}
			echo(w, r)
		}), "body.m", "body.n").ServeHTTP(w, r)
	}), "body.n", "body.m")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Header().Get("Found") != "2|1" || w.Body.String() != `{"n":1,"m":2}` {
		t.Errorf("found %q, body %q", w.Header().Get("Found"), w.Body)
	}
}

func TestClosedBody(t *testing.T) {
	body := &bodyOf{Reader: strings.NewReader(`{"n":1}`)}
	b := readHead(body, bodyType{kind: bodyJSON})
	if n, err := b.Read(make([]byte, 3)); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := b.Close(); err == nil || err.Error() != "closed" || body.closes != 1 {
		t.Errorf("%v, %d closes", err, body.closes)
	}
	if n, err := b.Read(make([]byte, 3)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("after Close: %d, %v", n, err)
	}
}
