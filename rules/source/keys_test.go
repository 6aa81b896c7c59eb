package source

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

// keyText is a file of keys, each "key-NAME".
func keyText(names ...string) string {
	text := "sha256,name\n"
	for _, name := range names {
		text += fmt.Sprintf("%x,%s\n", sha256.Sum256([]byte("key-"+name)), name)
	}
	return text
}

const keyRules = "version: 1\nidentify: { customer: api_key }\nrules:\n  - { name: api, per: customer, limits: 5/hour }\n"

// lines is a log that tests can read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// keyed is a watcher of rules that know API keys.
type keyed struct {
	*Watcher
	t         *testing.T
	dir       string
	log       lines
	keys, yml string
}

func startKeyed(t *testing.T, p pace, names ...string) *keyed {
	t.Helper()
	dir := t.TempDir()
	k := &keyed{t: t, dir: dir, keys: filepath.Join(dir, "keys.csv"), yml: filepath.Join(dir, "rules.yaml")}
	write(t, k.keys, keyText(names...))
	write(t, k.yml, keyRules)
	var err error
	k.Watcher, err = watch(t.Context(), k.yml, Options{
		Log:    slog.New(slog.NewTextHandler(&k.log, nil)),
		Config: rules.Config{Trust: rules.Trust{APIKeys: &rules.APIKeys{File: k.keys}}},
	}, p)
	do(t, err)
	t.Cleanup(k.Close)
	return k
}

// who is the counter that a caller with the key of name is held to.
func (k *keyed) who(name string) string {
	r := tidegate.Request{Method: "GET", Path: "/", Values: values{"client header X-Api-Key": "key-" + name, "ip": "192.0.2.1"}}
	checks := k.Live().Match(&r, nil)
	if len(checks) != 1 {
		return fmt.Sprint(checks)
	}
	return checks[0].Limit.Scope + " " + checks[0].Key
}

func (k *keyed) wants(name string, known bool) {
	k.t.Helper()
	want := "ip 192.0.2.1"
	if known {
		want = "customer " + name
	}
	eventually(k.t, fmt.Sprintf("%s counted as %s, not as %s; %s", name, want, k.who(name), k.log.text()), func() bool { return k.who(name) == want })
}

// A revoked key is not known any more, however the file is written, and who reads the log
// learns what becomes of the caller.
func TestKeysAreFollowed(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		k := startKeyed(t, p, "acme", "beta")
		k.wants("acme", true)
		k.wants("gamma", false)
		replace(t, k.keys, keyText("beta", "gamma"))
		k.wants("acme", false)
		k.wants("beta", true)
		k.wants("gamma", true)
		write(t, k.keys, keyText("beta"))
		k.wants("gamma", false)
		eventually(t, "what becomes of whom in the log", func() bool {
			text := k.log.text()
			return strings.Contains(text, "names=acme then=\"rule api counts them by address\"") && strings.Contains(text, "names=gamma")
		})
		// The rules themselves were not loaded again.
		if s := k.Status(); s.Reloads != 0 || s.APIKeys.Keys != 1 || s.APIKeys.LastError != "" || strings.Contains(strings.Join(s.Files, " "), "keys.csv") {
			t.Errorf("%+v, %+v", s, s.APIKeys)
		}
		eventually(t, "two reloads", func() bool { return k.Status().APIKeys.Reloads == 2 })
	})
}

// A file of keys that is broken, empty or gone leaves the keys in force, and says so; it holds
// up no rules.
func TestBadKeysKeepTheLastGood(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		k := startKeyed(t, p, "acme")
		for _, spoil := range []func(){
			func() { write(t, k.keys, keyText("acme")+"hunter2,oops\n") },
			func() { write(t, k.keys, "") },
			func() { do(t, os.Remove(k.keys)) },
			func() { do(t, os.Remove(k.keys)); do(t, os.Mkdir(k.keys, 0o755)) },
		} {
			failed := k.Status().APIKeys.Failed
			spoil()
			eventually(t, "a failure", func() bool { s := k.Status().APIKeys; return s.LastError != "" && s.Failed > failed })
			k.wants("acme", true)
			if s := k.Status(); s.LastError != "" || s.APIKeys.Since.IsZero() {
				t.Errorf("%+v, %+v", s, s.APIKeys)
			}
			if strings.Contains(k.log.text(), "hunter2") {
				t.Errorf("a key is in the log:\n%s", k.log.text())
			}
			do(t, os.RemoveAll(k.keys))
			write(t, k.keys, keyText("acme"))
			eventually(t, "the failure to end", func() bool { return k.Status().APIKeys.LastError == "" })
		}
		if !strings.Contains(k.log.text(), "API keys not reloaded: those loaded before stay in force") {
			t.Error(k.log.text())
		}
		write(t, k.keys, keyText("acme")+"x\n")
		eventually(t, "a failure", func() bool { return k.Status().APIKeys.LastError != "" })
		write(t, k.yml, strings.Replace(keyRules, "5/hour", "6/hour", 1))
		eventually(t, "the rules to change", func() bool { return k.Live().Set().Limits()[0].Events == 6 })
		k.wants("acme", true)
	})
}

// A rule file that is broken does not keep a key from being revoked.
func TestKeysAreRevokedBesideBrokenRules(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		k := startKeyed(t, p, "acme", "beta")
		write(t, k.yml, "rules: [")
		eventually(t, "a failure", func() bool { return k.Status().LastError != "" })
		replace(t, k.keys, keyText("beta"))
		k.wants("acme", false)
		k.wants("beta", true)
		if k.Status().LastError == "" {
			t.Error("the rules are broken still")
		}
	})
}

// The pace of users: a key is gone within a second, with reports of the kernel and without.
func TestAKeyIsRevokedWithinASecond(t *testing.T) {
	for _, silent := range []bool{false, true} {
		p := usual
		p.silent = silent
		if most := p.poll + p.quiet + p.settle; most > 900*time.Millisecond {
			t.Errorf("a change is seen after %s", most)
		}
		k := startKeyed(t, p, "acme", "beta")
		// A busy machine may miss it once, not five times.
		var took time.Duration
		for range 5 {
			write(t, k.keys, keyText("acme", "beta"))
			k.wants("acme", true)
			start := time.Now()
			replace(t, k.keys, keyText("beta"))
			k.wants("acme", false)
			if took = time.Since(start); took < time.Second {
				break
			}
		}
		if took >= time.Second {
			t.Errorf("it took %s, silent: %v", took, silent)
		}
	}
}

func TestKeysThatDoNotLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), keyRules)
	for _, text := range []string{"", "x\n", keyText("a", "a")} {
		write(t, filepath.Join(dir, "keys.csv"), text)
		_, err := Watch(t.Context(), filepath.Join(dir, "rules.yaml"), Options{
			Config: rules.Config{Trust: rules.Trust{APIKeys: &rules.APIKeys{File: filepath.Join(dir, "keys.csv")}}},
		})
		if err == nil || !strings.HasPrefix(err.Error(), "load API keys ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Reload has the keys read, too.
func TestReloadReadsKeys(t *testing.T) {
	p := pace{poll: time.Hour, quiet: time.Hour, most: time.Hour, settle: time.Hour, badTimeout: time.Hour, silent: true}
	k := startKeyed(t, p, "acme")
	replace(t, k.keys, keyText("beta"))
	k.Reload()
	k.wants("acme", false)
	k.wants("beta", true)
}
