package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A login form, the same in parts and its JSON twin share a counter however the account is
// spelled, and reach the upstream as they were sent.
func TestLoginFormsShareACounter(t *testing.T) {
	const parts = "--xyz\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\n\tANN\r\n--xyz--\r\n"
	tries := []struct{ kind, body string }{
		{"application/json", `{"email":"ann"}`},
		{"application/json; charset=utf-8", `{"email":" \u0041NN "}`},
		{"application/x-www-form-urlencoded", "email=Ann+"},
		{"application/x-www-form-urlencoded", "x=1&e%6dail=%41nn"},
		{"multipart/form-data; boundary=xyz", parts},
	}
	var got string
	g := before(t, `
version: 1
identify: { account: lower trim body.email }
rules: [{ name: login, match: POST /login, per: account, limits: 5/15m, count: { status: 401 } }]
`, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		w.WriteHeader(http.StatusUnauthorized)
	})
	post := func(kind, body string) int {
		t.Helper()
		r := newRequest(t, http.MethodPost, g.url+"/login", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		res, _ := do(t, r)
		return res.StatusCode
	}
	for _, try := range tries {
		if status := post(try.kind, try.body); status != http.StatusUnauthorized || got != try.body {
			t.Errorf("%s %q: status %d, the upstream got %q", try.kind, try.body, status, got)
		}
	}
	for _, try := range tries {
		if status := post(try.kind, try.body); status != http.StatusTooManyRequests {
			t.Errorf("%s %q: status %d, want 429", try.kind, try.body, status)
		}
	}
	// Another account has a counter of its own; what says two things is counted by address.
	for _, body := range []string{"email=bob", "email=ann&email=bob"} {
		if status := post("application/x-www-form-urlencoded", body); status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", body, status)
		}
	}
}
