package client

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// What a response says was used counts when the caller reads no further than to the end of the
// document, as a decoder does, which may be before the end of the body. What was cut off
// says nothing.
func TestProviderTokensOfDecoders(t *testing.T) {
	tokens := tidegate.MustLimit(tidegate.Spec{
		Name: "tokens", Events: 1000, Period: time.Hour, Algorithm: tidegate.FixedWindow,
		Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.body.usage.total_tokens"}},
	})
	const text = `{"usage":{"total_tokens":37},"more":"text"}`
	decode := func(r io.Reader) error { return json.NewDecoder(r).Decode(new(any)) }
	some := func(n int64) func(io.Reader) error {
		return func(r io.Reader) error { _, err := io.CopyN(io.Discard, r, n); return err }
	}
	whole := func(w http.ResponseWriter) { _, _ = io.WriteString(w, text) }
	parts := func(w http.ResponseWriter) { // the length is not announced, and the end comes later
		for _, c := range text {
			_, _ = io.WriteString(w, string(c))
			_ = http.NewResponseController(w).Flush()
		}
	}
	f := func(name string, want int64, answer func(http.ResponseWriter), read func(io.Reader) error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			_, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer(w)
			})
			store := memory.New()
			p := mustProvider(t, ProviderOptions{
				Store: store, Limits: []*tidegate.Limit{tokens}, Base: base,
				Cost: func(r *http.Request) int64 { return r.ContentLength },
			})
			res, err := (&http.Client{Transport: p}).Post("http://api.example.com/", "text/plain", strings.NewReader(strings.Repeat("x", 400)))
			if err != nil {
				t.Fatal(err)
			}
			if err := read(res.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			_ = res.Body.Close()
			_ = res.Body.Close()
			if used := 1000 - tidegate.New(store, tokens).Peek(t.Context(), tidegate.Key("api")).Remaining; used != want {
				t.Errorf("%s: %d tokens are used, want %d", name, used, want)
			}
		})
	}
	f("decoded", 37, whole, decode)
	f("decoded in parts", 37, parts, decode)
	f("read to the last byte", 37, parts, some(int64(len(text))))
	f("cut before the end", 400, parts, some(int64(len(text))-1))
	f("cut in the number", 400, parts, some(int64(strings.Index(text, "7"))))
	f("not read", 400, parts, some(0))
}
