package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/serve/origins"
	"tidegate.dev/tidegate/rules/source"
)

func init() { // tests do not wait for what has to settle in a checkout
	publishPace = workerPace{look: 20 * time.Millisecond, quiet: 20 * time.Millisecond, visit: 100 * time.Millisecond, retry: 20 * time.Millisecond}
}

// publishing is a folder of rules, and the Redis that they are published in.
type publishing struct {
	t       *testing.T
	folder  string
	url     string
	redis   *testdep.RedisServer
	archive source.Archive
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	r := testdep.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	p := &publishing{t: t, folder: t.TempDir(), url: "redis://" + r.Addr, redis: r}
	origin, err := origins.Open(p.url, origins.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = origin.Close() })
	p.archive = origin.(source.Archive)
	p.write(p.folder, 1)
	return p
}

// write writes rules with a limit of n.
func (p *publishing) write(folder string, n int) {
	p.t.Helper()
	p.writeFile(folder, "rules.yaml", fmt.Sprintf("version: 1\nrules:\n  - name: api\n    per: ip\n    limits: %d/minute\n", n))
}

// writeFile replaces a file, so that who follows its folder finds all of it or nothing.
func (p *publishing) writeFile(folder, name, text string) {
	p.t.Helper()
	draft := filepath.Join(p.t.TempDir(), "draft")
	err := os.WriteFile(draft, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(draft, filepath.Join(folder, name))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// follow runs a worker until the returned function is called.
func (p *publishing) follow(folder string, args ...string) (out, wrong *testdep.Output, stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	out, wrong = new(testdep.Output), new(testdep.Output)
	env := Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: wrong, Getenv: func(string) string { return "" }}
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, env, append([]string{"rules", "publish", folder, "--to", p.url, "--follow"}, args...))
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != exitOK {
			p.t.Errorf("the worker ended with %d: %s", code, wrong)
		}
	})
	p.t.Cleanup(func() {
		stop()
		if p.t.Failed() {
			p.t.Logf("the worker of %s printed:\n%s%s", folder, out, wrong)
		}
	})
	return out, wrong, stop
}

func (p *publishing) history() []source.Edition {
	p.t.Helper()
	all, err := p.archive.History(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// revisions waits until there are so many.
func (p *publishing) revisions(n int) []source.Edition {
	p.t.Helper()
	testdep.Eventually(p.t, fmt.Sprint(n, " revisions"), func() bool { return len(p.history()) >= n })
	return p.history()
}

// stays wants the worker to look at the source some more, and to leave it at so many revisions.
func (p *publishing) stays(n int) {
	p.t.Helper()
	time.Sleep(5 * publishPace.visit) // no event tells that it has looked, and left it
	if all := p.history(); len(all) != n {
		p.t.Fatalf("%d revisions, want %d: %+v", len(all), n, all)
	}
}

// limit returns the limit of a revision.
func (p *publishing) rules(e source.Edition) string {
	p.t.Helper()
	b, err := p.archive.Get(p.t.Context(), e.Revision)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b.Files["rules.yaml"])
}

func TestPublishFollows(t *testing.T) {
	p := newPublishing(t)
	_, wrong, stop := p.follow(p.folder, "--author", "robot")
	if all := p.revisions(1); all[0].Author != "robot" || !strings.Contains(all[0].Reason, p.folder) {
		t.Errorf("%+v", all)
	}
	p.write(p.folder, 2)
	if all := p.revisions(2); !strings.Contains(p.rules(all[0]), "2/minute") {
		t.Errorf("%+v", all)
	}
	p.stays(2)

	// What does not load is told once, and nothing is published.
	p.writeFile(p.folder, "rules.yaml", "version: 1\nrules:\n  - name: api\n    per: ip\n    limits: 3/minte\n")
	testdep.Eventually(t, "the mistake is told", func() bool {
		return strings.Contains(wrong.String(), "3/minte") || strings.Contains(wrong.String(), "minte")
	})
	p.stays(2)
	if n := strings.Count(wrong.String(), "not published, until the files change"); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, wrong)
	}

	// Nor what its tests refuse. A test that is mended lets it through.
	p.writeFile(p.folder, "rules_test.yaml", "rules: rules.yaml\ncases:\n  - name: four\n    steps:\n      - { request: GET /, times: 5, want: [ok, ok, ok, ok, refused] }\n")
	p.write(p.folder, 3)
	testdep.Eventually(t, "the test is told", func() bool { return strings.Contains(wrong.String(), "rules_test.yaml") })
	p.stays(2)
	p.writeFile(p.folder, "rules_test.yaml", "rules: rules.yaml\ncases:\n  - name: three\n    steps:\n      - { request: GET /, times: 4, want: [ok, ok, ok, refused] }\n")
	if all := p.revisions(3); !strings.Contains(p.rules(all[0]), "3/minute") {
		t.Errorf("%+v", all)
	}

	// A former state is published again, if the files have become it.
	if err := os.Remove(filepath.Join(p.folder, "rules_test.yaml")); err != nil {
		t.Fatal(err)
	}
	p.write(p.folder, 1)
	p.revisions(4)
	stop()
}

// A worker does not undo what an operator did, neither while it runs nor when it starts again.
func TestPublishLeavesARollback(t *testing.T) {
	p := newPublishing(t)
	_, _, stop := p.follow(p.folder)
	p.revisions(1)
	p.write(p.folder, 2)
	all := p.revisions(2)
	env := Env{Stdout: new(testdep.Output), Stderr: new(testdep.Output), Getenv: func(string) string { return "" }}
	if code := run(t.Context(), env, []string{"rules", "rollback", "--to", p.url, "--to-revision", all[1].Revision, "--reason", "too much", "--author", "ann"}); code != exitOK {
		t.Fatalf("rollback: %d, %s", code, env.Stderr)
	}
	p.stays(3)
	stop()
	out, _, _ := p.follow(p.folder)
	testdep.Eventually(t, "it says why it waits", func() bool { return strings.Contains(out.String(), "has replaced these rules, which were revision 2-") })
	p.stays(3)
	p.write(p.folder, 5)
	if all = p.revisions(4); !strings.Contains(p.rules(all[0]), "5/minute") {
		t.Errorf("%+v", all)
	}
}

// The source goes away and comes back, with and without what it had.
func TestPublishSurvivesOutages(t *testing.T) {
	p := newPublishing(t)
	p.redis.Kill()
	out, wrong, _ := p.follow(p.folder)
	testdep.Eventually(t, "the outage is told", func() bool { return strings.Contains(wrong.String(), "is tried again") })
	p.redis.Start()
	p.revisions(1)
	p.redis.Kill()
	p.write(p.folder, 2)
	testdep.Eventually(t, "the second outage is told", func() bool { return strings.Count(wrong.String(), "is tried again") >= 2 })
	p.redis.Start()
	if all := p.revisions(2); !strings.Contains(p.rules(all[0]), "2/minute") {
		t.Errorf("%+v", all)
	}
	testdep.Eventually(t, "the end is told", func() bool { return strings.Contains(out.String(), "answers again") })
	p.redis.Do("FLUSHALL")
	if all := p.revisions(1); len(all) != 1 || !strings.Contains(p.rules(all[0]), "2/minute") {
		t.Errorf("after a loss: %+v", all)
	}
	p.stays(1)
	// A failover has lost the newest revision.
	p.write(p.folder, 3)
	p.revisions(2)
	p.redis.Do("LTRIM", "tg:shelf:rules:rules", "0", "0")
	testdep.Eventually(t, "what was lost is published again", func() bool {
		all := p.history()
		return len(all) == 2 && strings.Contains(p.rules(all[0]), "3/minute")
	})
}

// Two workers on the same files publish once; on different files each once, and no more.
func TestTwoWorkers(t *testing.T) {
	p := newPublishing(t)
	other := t.TempDir()
	p.write(other, 1)
	p.follow(p.folder)
	p.follow(p.folder)
	p.follow(other)
	p.revisions(1)
	p.stays(1)
	p.write(p.folder, 2)
	p.write(other, 2)
	p.revisions(2)
	p.stays(2)
	p.write(p.folder, 3)
	p.write(other, 4)
	p.revisions(4)
	p.stays(4)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Of a checkout, author and subject of the last commit are those of the revision, and an older
// checkout does not undo a later one.
func TestPublishOfCheckouts(t *testing.T) {
	testdep.Need(t, "git")
	p := newPublishing(t)
	commit := func(folder, subject string) string {
		t.Helper()
		gitIn(t, folder, "add", "-A")
		gitIn(t, folder, "commit", "-q", "-m", subject+"\n\nand a body")
		return gitIn(t, folder, "rev-parse", "HEAD")
	}
	gitIn(t, p.folder, "init", "-q")
	first := commit(p.folder, "One a minute")
	old := filepath.Join(t.TempDir(), "old")
	gitIn(t, p.folder, "clone", "-q", p.folder, old)
	_, _, stop := p.follow(p.folder)
	if all := p.revisions(1); all[0].Author != "Ann <ann@example.com>" || all[0].Reason != "One a minute [commit "+first+"]" {
		t.Errorf("%+v", all)
	}
	p.write(p.folder, 2) // not committed: whoever runs the worker answers for it
	if all := p.revisions(2); all[0].Author == "Ann <ann@example.com>" || strings.Contains(all[0].Reason, "commit") {
		t.Errorf("%+v", all)
	}
	stop()
	p.write(p.folder, 3) // a worker would publish it before it is committed
	second := commit(p.folder, "Three a minute")
	_, _, stop = p.follow(p.folder)
	testdep.Eventually(t, "the commit is published", func() bool { return strings.Contains(p.history()[0].Reason, second) })
	stop()

	// A checkout that does not have the commit waits; so does one that has it and is older.
	n := len(p.history())
	out, _, stop := p.follow(old)
	testdep.Eventually(t, "it says what it waits for", func() bool { return strings.Contains(out.String(), "which this checkout does not have") })
	gitIn(t, old, "fetch", "-q")
	p.writeFile(old, "note.txt", "this changes the folder")
	gitIn(t, old, "add", "-A")
	gitIn(t, old, "stash", "-q")
	stop()
	out, _, stop = p.follow(old)
	testdep.Eventually(t, "it says that it is behind", func() bool { return strings.Contains(out.String(), "is from a later commit than this checkout") })
	p.stays(n)
	// It goes on when it has caught up.
	stop()
	gitIn(t, old, "merge", "-q", "--ff-only", "origin/HEAD")
	p.write(old, 7)
	third := commit(old, "Seven a minute")
	_, _, stop = p.follow(old)
	testdep.Eventually(t, "the next commit is published", func() bool { return strings.Contains(p.history()[0].Reason, third) })
	stop()
	if !slices.ContainsFunc(p.history(), func(e source.Edition) bool { return strings.Contains(e.Reason, first) }) {
		t.Errorf("%+v", p.history())
	}
}

// Nothing is published while git writes the files.
func TestPublishWaitsForGit(t *testing.T) {
	testdep.Need(t, "git")
	p := newPublishing(t)
	gitIn(t, p.folder, "init", "-q")
	gitIn(t, p.folder, "add", "-A")
	gitIn(t, p.folder, "commit", "-q", "-m", "one")
	p.writeFile(p.folder, ".git/index.lock", "")
	p.follow(p.folder)
	p.stays(0)
	if err := os.Remove(filepath.Join(p.folder, ".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	p.revisions(1)
}

func TestFilesMark(t *testing.T) {
	dir := t.TempDir()
	mark := func(name string) string {
		t.Helper()
		m, err := filesMark(name)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	was := mark(dir)
	changes := func(what string, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		now := mark(dir)
		if now == was {
			t.Errorf("%s: it is the same", what)
		}
		was = now
	}
	file := filepath.Join(dir, "lists", "a")
	changes("a file", func() error {
		return errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600))
	})
	changes("its content", func() error { return os.WriteFile(file, []byte("xy"), 0o600) })
	changes("its time", func() error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) })
	changes("its name", func() error { return os.Rename(file, file+"b") })
	elsewhere := filepath.Join(t.TempDir(), "y")
	changes("a link", func() error {
		return errors.Join(os.WriteFile(elsewhere, []byte("1"), 0o600), os.Symlink(elsewhere, filepath.Join(dir, "link")))
	})
	changes("where a link leads", func() error { return os.WriteFile(elsewhere, []byte("12"), 0o600) })
	changes("a link to nothing", func() error { return os.Remove(elsewhere) })
	if err := os.MkdirAll(filepath.Join(dir, ".git", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if mark(dir) != was {
		t.Error("what git keeps counts")
	}
	linked := filepath.Join(t.TempDir(), "rules")
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	if mark(linked) != was {
		t.Error("by a link it is another one")
	}
	if _, err := filesMark(filepath.Join(dir, "nothing")); err == nil {
		t.Error("nothing has a mark")
	}
}
