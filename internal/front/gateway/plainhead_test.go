package gateway

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// FuzzPlainHead holds what is read here to what net/http reads.
func FuzzPlainHead(f *testing.F) {
	for _, a := range answers {
		if len(a.answer) < mostPlainBytes {
			f.Add([]byte(a.answer), "GET")
		}
	}
	f.Add([]byte(five), "HEAD")
	f.Add([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\ncontent-length: 007\r\n\r\n"), "GET")
	f.Fuzz(func(t *testing.T, b []byte, method string) {
		if len(b) > mostPlainBytes {
			return
		}
		var p plainHead
		found := p.parse(b, method)
		for n := range b { // a head that is not complete is not read, and stays odd if it is
			if len(b) > 1000 {
				break
			}
			var part plainHead
			switch part.parse(b[:n], method) {
			case isPlain:
				if found != isPlain || n < p.size {
					t.Fatalf("%d bytes are enough, but not all %d of them", n, len(b))
				}
			case notPlain:
				if found != notPlain {
					t.Fatalf("%d bytes are odd, all %d are not", n, len(b))
				}
			}
		}
		if found != isPlain {
			return
		}
		in := bufio.NewReaderSize(bytes.NewReader(b), mostPlainBytes+1)
		want, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%q: net/http: %v", b, err)
		}
		if p.size != len(b)-in.Buffered() {
			t.Errorf("%q: a head of %d bytes, net/http has read %d", b, p.size, len(b)-in.Buffered())
		}
		length := p.length
		if method != http.MethodHead && p.bodiless(method) {
			length = 0
		}
		if p.status != want.StatusCode || length != want.ContentLength || p.close != want.Close || len(want.TransferEncoding) > 0 || len(want.Trailer) > 0 {
			t.Errorf("%q: status %d, length %d, close %t; net/http: %+v", b, p.status, length, p.close, want)
		}
		if bodiless := p.bodiless(method) || p.length == 0; bodiless != (want.Body == http.NoBody) {
			t.Errorf("%q: bodiless is %t", b, bodiless)
		}
		var got, other answerHeader
		got.open(http.Header{})
		other.open(http.Header{})
		p.addTo(&got, b)
		other.takeAll(want.Header)
		if !reflect.DeepEqual(got.header, other.header) {
			t.Errorf("%q: %v, net/http: %v", b, got.header, other.header)
		}
	})
}

// Ordinary answers are read without http.ReadResponse.
func TestPlainHead(t *testing.T) {
	f := func(method, head string, want plainness) {
		t.Helper()
		var p plainHead
		if got := p.parse([]byte(head), method); got != want {
			t.Errorf("%s, %q: %d, want %d", method, head, got, want)
		}
	}
	f("GET", five, isPlain)
	f("GET", strings.Repeat("x", 100), isShort)
	f("GET", "HTTP/1.1 404 Not Found\r\nServer: nginx\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", isPlain)
	f("GET", "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\ncontent-length: 5\r\n\r\nhello", isPlain)
	f("GET", "HTTP/1.1 304 Not Modified\r\nEtag: a\r\n\r\n", isPlain)
	f("HEAD", okLine+"\r\n", isPlain)
	f("GET", okLine+"\r\n", notPlain)
	f("GET", okLine+"Transfer-Encoding: chunked\r\n\r\n", notPlain)
	f("GET", "HTTP/1.1 103 Early Hints\r\n\r\n", notPlain)
	f("GET", "HTTP/1.0 200 OK\r\n", notPlain)
}

// The one place that decides about the headers of an answer.
func TestAnswerHeader(t *testing.T) {
	var a answerHeader
	a.open(http.Header{"X-Request-Id": {"ours"}, "Ratelimit": {"ours"}})
	a.takeAll(http.Header{
		"X-Request-Id": {"theirs"}, "Ratelimit": {"theirs"}, "Set-Cookie": {"a", "b"},
		"Connection": {"close, x-hop", "Upgrade"}, "X-Hop": {"gone"}, "Upgrade": {"gone"}, "Te": {"gone"},
	})
	a.take("Set-Cookie", []string{"c"})
	want := http.Header{"X-Request-Id": {"ours"}, "Ratelimit": {"ours", "theirs"}, "Set-Cookie": {"a", "b", "c"}}
	if !reflect.DeepEqual(a.header, want) {
		t.Errorf("%v, want %v", a.header, want)
	}
}
