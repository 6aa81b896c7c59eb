package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// output is written by the command and read by the test.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	o.awaitTimes(t, text, 1)
}

// awaitTimes waits until a text was written so often.
func (o *output) awaitTimes(t *testing.T, text string, times int) {
	t.Helper()
	var got string
	if !testdep.Await(time.Minute, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		got = o.buf.String()
		return strings.Count(got, text) >= times
	}) {
		t.Fatalf("%q is there %d times, want %d:\n%s", text, strings.Count(got, text), times, got)
	}
}

func TestWatchRunsAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rules.yaml", "version: 1\nrules: [{ name: a, per: ip, limits: 1/minute }]\n")
	write("rules_test.yaml", "rules: rules.yaml\ncases: [{ name: one, steps: [{ request: GET /, times: 2, want: [ok, refused] }] }]\n")

	ctx, stop := context.WithCancel(t.Context())
	var out output
	done := make(chan int)
	go func() {
		done <- run(ctx, Env{Stdout: &out, Stderr: &out}, []string{"test", "--watch", filepath.Join(dir, "rules_test.yaml")})
	}()
	out.await(t, "0 failed")
	write("rules.yaml", "version: 1\nrules: [{ name: a, per: ip, limits: 10/minute }]\n")
	out.await(t, "1 failed")
	write("rules.yaml", "version: 1\nrules: [{ name: a, per: ip, limit: 10/minute }]\n")
	out.await(t, "did you mean `limits`?")
	stop()
	if code := <-done; code != exitFound {
		t.Errorf("exit %d, want that of the last run", code)
	}
}
