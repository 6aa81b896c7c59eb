package listen

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// follow shows data to a framing, in parts of n bytes.
func follow(data []byte, n int) *framing {
	f := new(framing)
	for len(data) > 0 {
		part := data[:min(n, len(data))]
		f.observe(part)
		data = data[len(part):]
	}
	return f
}

func TestFraming(t *testing.T) {
	const host = " / HTTP/1.1\r\nHost: a\r\n"
	f := func(sent string, heads, bad int64) {
		t.Helper()
		for n := 1; n <= len(sent); n++ {
			if got := follow([]byte(sent), n); got.heads != heads || got.bad.Load() != bad {
				t.Errorf("%q by %d bytes: %d heads, bad %d; want %d, %d", sent, n, got.heads, got.bad.Load(), heads, bad)
				return
			}
		}
	}
	f("GET"+host+"\r\n", 1, 0)
	f("GET"+host+"\r\nGET"+host+"\r\n", 2, 0)
	f("GET"+host, 0, 0)
	f("POST"+host+"Content-Length: 3\r\n\r\nabc\r\n\r\nGET"+host+"\r\n", 2, 0)
	f("POST"+host+"content-length:3\n\nGETGET"+host+"\r\n", 2, 0)
	f("POST"+host+"Transfer-Encoding: chunked\r\n\r\n3;x=\"\"\r\nabc\r\n0\r\nA: b\r\n\r\nGET"+host+"\r\n", 2, 0)
	f("POST"+host+"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 1, 1)
	f("GET"+host+"\r\nPOST"+host+"TRANSFER-ENCODING: chunked\r\nCONTENT-LENGTH: 3\r\n\r\n", 2, 2)
	f("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 1, 1)
	f("POST"+host+"Content-Length:\r\n 3\r\n\r\nabc", 1, 1)
	f("POST"+host+"Content-Length: 3"+strings.Repeat(" ", 60)+"\r\n\r\nabc", 1, 1)
	f("POST"+host+"X-Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1, 0)
	f("POST"+host+"Transfer-Encoding: chunked\r\nA: Content-Length: 3\r\n\r\n0\r\n\r\n", 1, 0)
	f("GET"+host+"A: b\r\n c\r\n\r\n", 1, 1)
	f("GET"+host+"A: b\n\t\n\n", 1, 1)
	f("GET"+host+"\r\nGET"+host+"A:\r\n b\r\n\r\n", 2, 2)
	f("POST"+host+"Content-Length: 4\r\n\r\n a\r\nGET"+host+"\r\n", 2, 0) // a body may look like one
	f("GET"+host+"\r\nnot\x00HTTP\n\n\n\xff", 2, 0)                       // whatever it is
}

// oracle reads data as net/http does. It returns how many requests it could read
// whole, and whether the next is a trick.
func oracle(data []byte) (whole int64, trick bool) {
	rest := bytes.NewReader(data)
	in := bufio.NewReader(rest)
	at := func() int { return len(data) - rest.Len() - in.Buffered() }
	for {
		start := at()
		r, err := http.ReadRequest(in)
		if err != nil {
			return whole, false
		}
		if isTrick(data[start:at()], r.Proto) {
			return whole, true
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return whole, false
		}
		r.Body.Close()
		whole++
	}
}

// isTrick is the rule in other words: any trick with either, and any folded line.
func isTrick(head []byte, proto string) bool {
	length, coding := false, false
	for line := range bytes.Lines(head) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return true
		}
		name, _, _ := strings.Cut(strings.ToLower(string(line)), ":")
		named := name == "content-length" || name == "transfer-encoding"
		if named && len(line) >= 63 {
			return true
		}
		length = length || name == "content-length"
		coding = coding || name == "transfer-encoding"
	}
	return coding && (length || proto != "HTTP/1.1")
}

// What net/http reads as requests, framing has seen; it refuses those with two
// lengths or folded headers and no others.
func FuzzFraming(f *testing.F) {
	files, err := filepath.Glob("../gateway/testdata/wire/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		sent, _, _ := strings.Cut(string(raw), "\n----\n")
		sent = strings.ReplaceAll(sent, "\n", "")
		f.Add([]byte(strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\t`, "\t").Replace(sent)), uint8(7))
	}
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		got := follow(data, max(1, int(n)))
		if again := follow(data, len(data)+1); again.heads != got.heads || again.bad.Load() != got.bad.Load() {
			t.Fatalf("by parts: %d heads, bad %d; at once: %d, %d", got.heads, got.bad.Load(), again.heads, again.bad.Load())
		}
		whole, bad := oracle(data)
		switch refused := got.bad.Load(); {
		case got.heads < whole:
			t.Fatalf("%d heads, net/http reads %d", got.heads, whole)
		case bad && refused != whole+1:
			t.Fatalf("request %d is a trick, refused is %d", whole+1, refused)
		case refused != 0 && refused <= whole:
			t.Fatalf("request %d is refused, net/http reads %d whole ones", refused, whole)
		}
	})
}
