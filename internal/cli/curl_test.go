package cli

import (
	"slices"
	"testing"
)

func TestShellWords(t *testing.T) {
	f := func(line string, want ...string) {
		t.Helper()
		got, err := shellWords(line)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	f("")
	f("curl  x", "curl", "x")
	f(`a 'b c' "d 'e'" f\ g`, "a", "b c", "d 'e'", "f g")
	f(`-d '{"a":1}'`, "-d", `{"a":1}`)
	f(`"a\"b\\c\d"`, `a"b\c\d`)
	f("curl \\\n  x", "curl", "x")
	f(`a''b ""`, "ab", "")
	f(`-d $'{"a":"it\'s"}' x`, "-d", `{"a":"it's"}`, "x")
	f(`$'a\u0021\u00e4\n\t\\\"\x41\qé'b "$'c'"`, "a!ä\n\t\\\"A\\qéb", "$'c'")
	f(`$'' $a`, "", "$a")
}

func TestCurl(t *testing.T) {
	f := func(line, method, url, header, value, body string) {
		t.Helper()
		d := newDraft("")
		if err := d.fromCurl(line); err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		h, err := d.HTTP()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return
		}
		if h.Method != method || h.URL.String() != url || h.Header.Get(header) != value || d.Body != body {
			t.Errorf("%s: got %s %s, %s: %q, body %q", line, h.Method, h.URL, header, h.Header.Get(header), d.Body)
		}
	}
	f("curl example.com/x", "GET", "http://example.com/x", "A", "", "")
	f("curl -XPUT https://example.com/x -H 'A: b'", "PUT", "https://example.com/x", "A", "b", "")
	f("curl /x -d a=1 -d b=2", "POST", "http://localhost/x", "Content-Type", "application/x-www-form-urlencoded", "a=1&b=2")
	f(`curl /x --json '{"a":1}'`, "POST", "http://localhost/x", "Content-Type", "application/json", `{"a":1}`)
	f("curl /x --data-urlencode 'a=x&y' --data-urlencode '=b c'", "POST", "http://localhost/x", "Content-Type", "application/x-www-form-urlencoded", "a=x%26y&b+c")
	f("curl /x -F a=1 --form-string b=2", "POST", "http://localhost/x", "Content-Type", "multipart/form-data; boundary=tidegate-form-boundary",
		"--tidegate-form-boundary\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--tidegate-form-boundary\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n2\r\n--tidegate-form-boundary--\r\n")
	f("curl -I /x", "HEAD", "http://localhost/x", "A", "", "")
	f("curl -G /x -d a=1", "GET", "http://localhost/x?a=1", "A", "", "")
	f("curl --user u:p --url=/x", "GET", "http://localhost/x", "Authorization", "Basic dTpw", "")
	f("curl -sS --max-time 5 --cookie a=b /x", "GET", "http://localhost/x", "Cookie", "a=b", "")
}

func TestCurlMistakes(t *testing.T) {
	f := func(line string) {
		t.Helper()
		d := newDraft("")
		if d.fromCurl(line) == nil {
			t.Errorf("%s: no error", line)
		}
	}
	f("curl")
	f("curl a b")
	f("curl -H")
	f("curl -H nothing /x")
	f("curl --wat /x")
	f("curl 'x")
	f("curl $'x")
	f(`curl $'x\'`)
	f("curl -d @file /x")
}

func FuzzCurl(f *testing.F) {
	f.Add("curl -XPUT https://example.com/x -H 'A: b'")
	f.Add(`curl "a\"b" --json '{}'`)
	f.Fuzz(func(_ *testing.T, line string) {
		d := newDraft("")
		if d.fromCurl(line) == nil {
			_, _ = d.Request.Request()
		}
	})
}
