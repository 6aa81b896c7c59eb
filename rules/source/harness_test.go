package source

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

// deadline is the time that anything has to happen in. The pace of the tests is
// far quicker; that of users is held to a second by TestAChangeHoldsWithinASecond.
const deadline = 20 * time.Second

// modes are how changes are found: by the reports of the kernel alone, and by
// polling alone. Every test of a change passes both.
var modes = map[string]pace{
	"reports": {poll: time.Hour, quiet: 10 * time.Millisecond, most: 200 * time.Millisecond, settle: 30 * time.Millisecond, badTimeout: 2 * deadline},
	"polling": {poll: 20 * time.Millisecond, quiet: 10 * time.Millisecond, most: 200 * time.Millisecond, settle: 30 * time.Millisecond, badTimeout: 2 * deadline, silent: true},
}

func bothModes(t *testing.T, f func(t *testing.T, p pace)) {
	t.Helper()
	for name, p := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// watched is a Watcher under test.
type watched struct {
	*Watcher
	t        *testing.T
	reloads  atomic.Int64
	failures atomic.Int64
}

func start(t *testing.T, name string, p pace) *watched {
	t.Helper()
	return startWith(t, name, p, Options{})
}

func startWith(t *testing.T, name string, p pace, o Options) *watched {
	t.Helper()
	w := &watched{t: t}
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	o.OnReload = func(old, new *rules.Set) {
		if old == new || old == nil || new != w.Live().Set() {
			t.Errorf("OnReload(%p, %p), and %p is in force", old, new, w.Live().Set())
		}
		w.reloads.Add(1)
	}
	o.OnError = func(err error) {
		if !strings.HasPrefix(err.Error(), "load rules ") {
			t.Errorf("OnError(%v)", err)
		}
		w.failures.Add(1)
	}
	var err error
	w.Watcher, err = watch(t.Context(), name, o, p)
	do(t, err)
	t.Cleanup(w.Close)
	return w
}

// admits is the sum of the limits that are in force for everybody.
func (w *watched) admits() (sum int64) {
	request := tidegate.Request{Method: "GET", Path: "/"}
	for _, c := range w.Live().Match(&request, nil) {
		sum += c.Limit.Events
	}
	return sum
}

// bans reports whether somebody is denied access.
func (w *watched) bans(who string) bool {
	r := tidegate.Request{Method: "GET", Path: "/", Values: values{"client header X-Who": who}}
	return slices.ContainsFunc(w.Live().Match(&r, nil), func(c tidegate.Check) bool { return c.Limit.Algorithm == tidegate.Deny })
}

// values are the attributes of a request.
type values map[string]string

func (v values) Value(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// wants waits until the rules in force admit n, and the status says so: it is
// written a moment later.
func (w *watched) wants(n int64) {
	w.t.Helper()
	if !settles(func() bool { return w.admits() == n && w.Status().LastError == "" }) {
		w.t.Fatalf("not within %s: %d admitted; it is %d, status %+v", deadline, n, w.admits(), w.Status())
	}
}

// wantsFailure waits until a failure is shown, then checks that the rules in
// force still admit n.
func (w *watched) wantsFailure(n int64) Status {
	w.t.Helper()
	eventually(w.t, "a failure in the status", func() bool { return w.Status().LastError != "" })
	if got := w.admits(); got != n {
		w.t.Errorf("%d are admitted after a failure, want %d as before", got, n)
	}
	return w.Status()
}

// wantsCounts checks how many reloads and failures there have been by now.
func (w *watched) wantsCounts(reloads, failed int) {
	w.t.Helper()
	if !settles(func() bool { return w.reloads.Load() == int64(reloads) && w.failures.Load() == int64(failed) }) {
		w.t.Fatalf("told of %d reloads and %d failures, want %d and %d; %+v", w.reloads.Load(), w.failures.Load(), reloads, failed, w.Status())
	}
	if s := w.Status(); s.Reloads != reloads || s.Failed != failed {
		w.t.Errorf("%d reloads and %d failures, want %d and %d", s.Reloads, s.Failed, reloads, failed)
	}
}

// limit is a rule file whose only rule admits n.
func limit(n int) string { return rule("api", n) }

func rule(name string, n int) string {
	return fmt.Sprintf("version: 1\nrules:\n  - { name: %s, per: everyone, limits: %d/hour }\n", name, n)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	do(t, os.WriteFile(name, []byte(content), 0o644))
}

// replace writes a file beside name and renames it over.
func replace(t *testing.T, name, content string) {
	t.Helper()
	write(t, name+".tmp", content)
	do(t, os.Rename(name+".tmp", name))
}

// link makes name lead to target, in one step.
func link(t *testing.T, target, name string) {
	t.Helper()
	do(t, os.Symlink(target, name+".tmp"))
	do(t, os.Rename(name+".tmp", name))
}

func mkdir(t *testing.T, name ...string) string {
	t.Helper()
	dir := filepath.Join(name...)
	do(t, os.MkdirAll(dir, 0o755))
	return dir
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually is testdep.Eventually for less time than a broken file is waited for.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !settles(cond) {
		t.Fatalf("not within %s: %s", deadline, what)
	}
}

// settles reports whether cond becomes true in time.
func settles(cond func() bool) bool { return testdep.Await(deadline, cond) }
