package feed

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/source"
)

func TestDecodeRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if b, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %+v, %v; want %q", text, b, err, want)
		}
	}
	for _, text := range []string{"", "null", "1", "[]", "{", `{"files":[]}`, `{"files":{"a":null}}{}`, `{"files":{}}`, `{"revision":"1"}`} {
		f(text, "not a bundle")
	}
	for _, name := range []string{"", ".", "..", "../a", "/a", "a/", "a//b", "./a", "a/../b", `a\u0000b`} {
		f(fmt.Sprintf(`{"files":{"%s":"x"}}`, name), "not the path of a file")
	}
	f(`{"files":{"a":"x"},"main":"b"}`, "does not have that file")
	f(`{"files":{"a":"x"},"over":["b"]}`, "does not have that file")
	f(`{"files":{"a":"x"},"over":["../b"]}`, "path of a rule file")
	f(`{"files":{"a":"x"},"main":"/"}`, "path of a rule file")
	f(`{"files":{"a":"`+strings.Repeat("x", source.MaxFile+1)+`"}}`, "16 MiB")
	many := make(map[string][]byte)
	for i := range source.MaxFiles + 1 {
		many[fmt.Sprint(i)] = nil
	}
	text, err := Encode(&source.Bundle{Files: many})
	if err != nil {
		t.Fatal(err)
	}
	f(string(text), "1001 files")
}

// Whatever is decoded is encoded as the same again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"revision":"1","main":"a","files":{"a":"x","b/c":"<é>"},"author":"ann","at":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"files":{"..":"x"}}`))
	f.Add([]byte(`{"files":{"a":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Decode(again)
		if err != nil || c.Revision != b.Revision || c.Main != b.Main || !c.At.Equal(b.At) || !maps.EqualFunc(b.Files, c.Files, bytes.Equal) {
			t.Errorf("%+v became %+v, %v", b, c, err)
		}
	})
}
