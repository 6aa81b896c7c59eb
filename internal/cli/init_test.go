package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// command runs a command and returns its code and what it printed.
func runCommand(t *testing.T, env Env, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	env.Stdout, env.Stderr, env.Getenv = &out, &out, func(string) string { return "" }
	return run(t.Context(), env, args), out.String()
}

// initiated holds what init has written to lint, to its own test and to what serve would
// say of the configuration.
func initiated(t *testing.T, folder string) {
	t.Helper()
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, args := range [][]string{{"lint", "--strict", in("rules.yaml")}, {"test", "--strict", folder}} {
		if code, out := runCommand(t, Env{}, args...); code != exitOK || strings.Contains(out, "waived") {
			rules, _ := os.ReadFile(in("rules.yaml"))
			tests, _ := os.ReadFile(in("rules_test.yaml"))
			t.Errorf("tidegate %q: exit %d\n%s\n%s\n%s", args, code, out, rules, tests)
		}
	}
	c, problems := config.Load(config.Options{File: in("tidegate.yaml"), Environ: []string{}})
	if c == nil || len(problems) > 0 || !slices.Equal(c.Rules, []string{in("rules.yaml")}) {
		text, _ := os.ReadFile(in("tidegate.yaml"))
		t.Errorf("%v in\n%s", problems, text)
	}
}

// Whatever is answered, what init writes passes lint --strict and its test, and serve
// would take it.
func TestInitOfEveryAnswer(t *testing.T) {
	testdep.SkipUnderRace(t)
	keys := filepath.Join(t.TempDir(), "my keys.json")
	if err := os.WriteFile(keys, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	try := func(args ...string) {
		t.Helper()
		n++
		folder := filepath.Join(t.TempDir(), fmt.Sprint(n))
		if code, out := runCommand(t, Env{}, append([]string{"init", folder}, args...)...); code != exitOK {
			t.Errorf("init %q: exit %d\n%s", args, code, out)
			return
		}
		initiated(t, folder)
	}
	try()
	try("--limit", "5/second,1000/hour")
	try("--limit", " 64/second , 20000/day ", "--per", "api-key")
	try("--login", "", "--match", "GET /users/{id}/posts")
	try("--login", "/login/")
	try("--limit", "200000/minute,1000000/hour", "--per", "api-key")
	for _, match := range []string{"/", "/api/", "GET /v1/{id}", "api.example.com/", "/files/{path...}", "/{$}", "POST /login", "/with space/{a}/{$}"} {
		for _, per := range countable {
			for _, limit := range []string{"1/minute", "5/15m", "6/day, 20/week", "100/minute", "1000000/second"} {
				for _, login := range []string{"none", "POST /login", "POST /v1/{tenant}/session"} {
					try("--match", match, "--per", per, "--limit", limit, "--login", login)
				}
			}
		}
	}
	for _, per := range countable {
		for _, jwks := range []string{"none", keys} {
			for _, proxies := range []string{"none", "10.0.0.0/8", "10.0.0.0/8, 2001:db8::/32"} {
				for _, redis := range []string{"none", "redis://127.0.0.1:6379", "rediss://:p%40ss@redis.example.com:6380/2", "redis-cluster://a:1,b:2"} {
					try("--per", per, "--jwks", jwks, "--proxies", proxies, "--redis", redis, "--upstream", "https://api.example.com:8443")
				}
			}
		}
	}
}

// Every question can be answered by a flag, and the other way round.
func TestInitQuestionsAreFlags(t *testing.T) {
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	initCommand.setup(flags)
	for _, q := range questions {
		if flags.Lookup(q.name) == nil || q.ask == "" {
			t.Errorf("%+v", q)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	f := func(part string, args ...string) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), "new")
		code, out := runCommand(t, Env{}, append([]string{"init", folder}, args...)...)
		if code != exitUsage || !strings.Contains(out, part) {
			t.Errorf("init %q: exit %d, want %q in\n%s", args, code, part, out)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("init %q has written something", args)
		}
	}
	f("write ip, user or api-key", "--per", "device")
	f("use a quota", "--limit", "100/month")
	f("lot", "--limit", "a lot")
	f("`0/minute`", "--limit", "0/minute")
	f("fortnight", "--limit", "5/fortnight")
	f("write `GET /api/`", "--match", "GET/api/")
	f("login", "--login", "log in here")
	f("upstreams", "--upstream", "localhost:9000")
	f("proxies", "--proxies", "10.0.0.0/99")
	f("redis", "--redis", "http://127.0.0.1")
	f("does not exist", "--per", "user", "--jwks", "missing.json")
	f("there is also", "another")
	f("there is no flag --upstreams; did you mean --upstream?", "--upstreams", "x")
	f("", "--match", "/a\nrules: []")
}

// Nothing is overwritten, and then nothing is written at all.
func TestInitOverwritesNothing(t *testing.T) {
	for _, name := range initFiles {
		for _, kind := range []string{"file", "link", "folder"} {
			folder := t.TempDir()
			file := filepath.Join(folder, name)
			var err error
			switch kind {
			case "file":
				err = os.WriteFile(file, []byte("mine"), 0o600)
			case "link":
				err = os.Symlink(filepath.Join(folder, "nowhere"), file)
			case "folder":
				err = os.Mkdir(file, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			code, out := runCommand(t, Env{}, "init", folder)
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			if code != exitFound || !strings.Contains(out, "already there: "+file+"; nothing is overwritten") || len(entries) != 1 {
				t.Errorf("%s %s: exit %d, %d entries: %s", kind, name, code, len(entries), out)
			}
		}
	}
}

// A password of Redis is for nobody else to read.
func TestInitKeepsPasswords(t *testing.T) {
	f := func(redis string, want os.FileMode) {
		t.Helper()
		folder := t.TempDir()
		if code, out := runCommand(t, Env{}, "init", folder, "--redis", redis); code != exitOK {
			t.Fatal(out)
		}
		info, err := os.Stat(filepath.Join(folder, configFile))
		if err != nil || info.Mode().Perm()&^0o022 != want {
			t.Errorf("%s: %v, %v", redis, info.Mode(), err)
		}
	}
	f("redis://:secret@127.0.0.1:6379", 0o600)
	f("redis-sentinel://a,b/mymaster?sentinel_password=secret", 0o600)
	f("redis://127.0.0.1:6379", 0o644)
}

// On a terminal it asks for what no flag has said, again if the answer cannot be used.
func TestInitAsks(t *testing.T) {
	f := func(typed string, code int, folder string, args ...string) string {
		t.Helper()
		got, out := runCommand(t, Env{Stdin: strings.NewReader(typed), Asks: true}, append([]string{"init", folder}, args...)...)
		if got != code {
			t.Fatalf("exit %d, want %d:\n%s", got, code, out)
		}
		return out
	}
	read := func(folder, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	folder := t.TempDir()
	out := f("http://127.0.0.1:3000\n/api/\nnobody\nuser\n\n30/month\n 30/minute \nnone\n10.0.0.0/8\nredis://127.0.0.1:6379\n", exitOK, folder)
	for _, part := range []string{"[http://127.0.0.1:9000]", "write ip, user or api-key", "use a quota", "tidegate serve -c"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	initiated(t, folder)
	if got := read(folder, rulesFile); !strings.Contains(got, "limits: 30/minute") || !strings.Contains(got, "user: jwt.sub") || strings.Contains(got, "login") {
		t.Errorf("wrote\n%s", got)
	}
	if got := read(folder, configFile); !strings.Contains(got, "[http://127.0.0.1:3000]") || !strings.Contains(got, "store: { redis: redis://127.0.0.1:6379 }") || !strings.Contains(got, "proxies: [10.0.0.0/8]") {
		t.Errorf("wrote\n%s", got)
	}

	// A flag is not asked about, and the defaults are one key away.
	folder = t.TempDir()
	out = f("\n\n\n\n\n\n", exitOK, folder, "--limit", "7/minute")
	if strings.Contains(out, "How much may each do?") || strings.Contains(out, "keys that verify tokens") || strings.Count(out, "[") != 6 {
		t.Errorf("asked\n%s", out)
	}
	initiated(t, folder)

	// With --yes nothing is asked, and input that ends early writes nothing.
	folder = t.TempDir()
	if out = f("", exitOK, folder, "--yes"); strings.Contains(out, "?") {
		t.Errorf("asked\n%s", out)
	}
	folder = filepath.Join(t.TempDir(), "new")
	if out = f("\n", exitFound, folder); !strings.Contains(out, "the input ended; nothing is written") {
		t.Errorf("said\n%s", out)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("something is written")
	}
	// A flag that cannot be used is told first.
	if out = f("\n", exitUsage, folder, "--limit", "x"); strings.Contains(out, "Where is") {
		t.Errorf("asked\n%s", out)
	}
}

// Whoever is interrupted while it asks has written nothing.
func TestInitIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdin, typing := io.Pipe()
	defer typing.Close()
	folder := filepath.Join(t.TempDir(), "new")
	var out output
	ended := make(chan int)
	go func() {
		ended <- run(ctx, Env{Stdin: stdin, Stdout: &out, Stderr: &out, Asks: true, Getenv: os.Getenv}, []string{"init", folder})
	}()
	out.await(t, "Where is the server")
	stop()
	select {
	case code := <-ended:
		if _, err := os.Stat(folder); err == nil || code != exitFound {
			t.Errorf("exit %d, %v", code, err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on asking")
	}
}
