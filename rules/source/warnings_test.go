package source

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/rules"
)

// logged is a log that is written and read by several goroutines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

const byUser = "version: 1\nidentify: { user: jwt.sub }\nrules:\n  - { name: api, per: user, limits: 10/minute }\n"

// A program that trusts nobody counts nobody by user, and is told when it starts.
func TestWarningsAreLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	save := func(text string) { do(t, os.WriteFile(file, []byte(text), 0o600)) }
	save(byUser)
	out := &logged{}
	reloaded := make(chan bool, 1)
	w, err := watch(t.Context(), file, Options{
		Log:      slog.New(slog.NewTextHandler(out, nil)),
		OnReload: func(_, _ *rules.Set) { reloaded <- true },
	}, modes["polling"])
	do(t, err)
	defer w.Close()
	const warning = "`user` is read from tokens, and no key is configured to verify them"
	if out.count(warning) != 1 || out.count("rules.yaml:2:19") != 1 {
		t.Errorf("the log is\n%s", &out.text)
	}
	save(strings.ReplaceAll(byUser, "10/minute", "20/minute"))
	<-reloaded
	if n := out.count(warning); n != 2 {
		t.Errorf("after a reload, the log has the warning %d times", n)
	}
}

func TestWarningsAreTold(t *testing.T) {
	for text, want := range map[string]int{byUser: 1, strings.ReplaceAll(byUser, "jwt.sub", "ip"): 0} {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		do(t, os.WriteFile(file, []byte(text), 0o600))
		out := &logged{}
		calls, told := 0, 0
		w, err := watch(t.Context(), file, Options{
			Log:        slog.New(slog.NewTextHandler(out, nil)),
			OnWarnings: func(p rules.Problems) { calls, told = calls+1, len(p) },
		}, modes["polling"])
		do(t, err)
		w.Close()
		if calls != 1 || told != want || out.count("WARN") != 0 {
			t.Errorf("%d calls with %d warnings, want 1 with %d; the log is\n%s", calls, told, want, &out.text)
		}
	}
}
