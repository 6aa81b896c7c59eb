package cli

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/front/admin"
)

func TestHealth(t *testing.T) {
	var reason error
	srv := httptest.NewServer(admin.New(admin.Options{Ready: []func() error{func() error { return reason }}}))
	defer srv.Close()
	f := func(code int, want, server string, args ...string) {
		t.Helper()
		var out, err bytes.Buffer
		e := Env{Stdout: &out, Stderr: &err, Getenv: func(name string) string {
			return map[string]string{"TIDEGATE_SERVER": server}[name]
		}}
		if got := run(t.Context(), e, append([]string{"health"}, args...)); got != code || !strings.Contains(out.String()+err.String(), want) {
			t.Errorf("health %q at %s: exit code %d, want %d, and %q in\n%s%s", args, server, got, code, want, &out, &err)
		}
	}
	f(exitOK, "ready\n", srv.URL)
	f(exitOK, "alive\n", srv.URL, "--alive")
	reason = errors.New("the server is draining")
	f(exitFound, "not ready\n  the server is draining\n", srv.URL)
	f(exitOK, "alive\n", srv.URL, "--alive")
	f(exitUsage, "takes no arguments", srv.URL, "now")
	f(exitUsage, "is not a valid address", "ftp://x")

	other := httptest.NewServer(http.NotFoundHandler())
	f(exitFound, "is this the admin listener?", other.URL)
	other.Close()
	f(exitFound, "is tidegate serve running", other.URL)
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer other.Close()
	f(exitFound, "not ready", other.URL)
}
