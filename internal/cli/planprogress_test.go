package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"tidegate.dev/tidegate/internal/front/admin"
)

// A server that takes long says how far it is, and that is shown; a quick one is not worth a line.
func TestPlanShowsProgress(t *testing.T) {
	var steps []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, step := range steps {
			if r.Header.Get(admin.ProgressHeader) == "" {
				t.Error("nobody wants to know")
			}
			w.Header().Set(admin.ProgressHeader, step)
			w.WriteHeader(http.StatusProcessing)
		}
		w.Header().Del(admin.ProgressHeader)
		_, _ = w.Write([]byte(`{"valid":true,"problems":[]}`)) // the client may have gone
	}))
	defer server.Close()
	f := func(want string, all ...string) {
		t.Helper()
		steps = all
		var problems bytes.Buffer
		env := Env{Stderr: &problems, Getenv: func(string) string { return "" }}
		r := remote{server: server.URL}
		if err := r.find(env); err != nil {
			t.Fatal(err)
		}
		var p rulesPlan
		if err := p.ask(t.Context(), env, &r, admin.Proposal{}); err != nil || p.Live == nil {
			t.Fatal(err)
		}
		if got := regexp.MustCompile(`\r\d+ s:`).ReplaceAllString(problems.String(), "|"); got != want {
			t.Errorf("%q: shown %q, want %q", all, got, want)
		}
	}
	f("")
	f("| looking for live keys | 1 live key looked at | 1200 live keys looked at \n", "0", "1", "x", "1200")
}
