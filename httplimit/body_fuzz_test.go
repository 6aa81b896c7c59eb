package httplimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzBodyValue: the rules see what encoding/json decodes, or nothing where a name
// is there twice, and the handler sees every byte and the error at the end, however
// they come.
func FuzzBodyValue(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"x"},"a":{"b":1.5}}`), "a.b", 0, false)
	f.Add([]byte(`{"a":"\u0062\ud800"}`), "a", 1, true)
	f.Add([]byte(`{"a":12345678901234567890}`), "a", 2, false)
	f.Add([]byte(`{"a":true,"b":[{"a":false}]} `), "a", maxBody-10, false)
	f.Add([]byte(`{"a":1}`), "a", maxBody, false)
	f.Fuzz(func(t *testing.T, text []byte, path string, pad int, fails bool) {
		pad = int(uint(pad) % (2*maxBody + 1))
		text = append(bytes.Clone(text), strings.Repeat(" ", pad)...)
		failure := errors.New("gone")
		var body io.Reader = bytes.NewReader(text)
		if fails {
			body = io.MultiReader(body, iotest.ErrReader(failure))
		}
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.Header.Set("Content-Type", "application/json")
		got := bodyValue(r, path)
		if want := decoded(text, path); fails && got != "" || !fails && got != want && !(got == "" && repeats(text)) {
			t.Errorf("%s of %.200q: %q, want %q", path, text, got, want)
		}
		all, err := io.ReadAll(r.Body)
		if !bytes.Equal(all, text) || fails != errors.Is(err, failure) || !fails && err != nil {
			t.Errorf("the handler got %d of %d bytes, %v", len(all), len(text), err)
		}
	})
}

// repeats reports whether an object has a name twice, whatever its case.
func repeats(text []byte) bool {
	var open []map[string]bool // of an array: nil
	isName := false
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return false
		}
		top := len(open) - 1
		switch {
		case token == json.Delim('{'):
			open = append(open, map[string]bool{})
		case token == json.Delim('['):
			open = append(open, nil)
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:top]
		case isName:
			for name := range open[top] {
				if strings.EqualFold(name, token.(string)) {
					return true
				}
			}
			open[top][token.(string)] = true
			isName = false
			continue
		}
		isName = len(open) > 0 && open[len(open)-1] != nil
	}
}

// decoded is bodyValue by way of encoding/json.
func decoded(text []byte, path string) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var at any
	if len(text) > maxBody || !json.Valid(text) || d.Decode(&at) != nil {
		return ""
	}
	for _, name := range strings.Split(path, ".") {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	switch v := at.(type) {
	case string:
		return v
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		s := v.String()
		if strings.ContainsAny(s, ".eE") || s == "-0" {
			f, err := v.Float64()
			if err != nil {
				return ""
			}
			s = strconv.FormatFloat(f, 'f', -1, 64)
			if f == 0 {
				s = "0"
			}
		}
		if len(s) > 64 {
			return ""
		}
		return s
	}
	return ""
}
