package redis

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/archivetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

func open(t *testing.T, c Config) *Archive {
	t.Helper()
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	a.alive = 300 * time.Millisecond
	return a
}

// server is what the suite needs of one server, or of several.
func server(t *testing.T, url string, all []*testdep.RedisServer) archivetest.Server {
	t.Helper()
	each := func(do func(*testdep.RedisServer)) func() {
		return func() {
			for _, r := range all {
				do(r)
			}
		}
	}
	return archivetest.Server{
		Open:  func() source.Archive { return open(t, Config{URL: url}) },
		Wipe:  each(func(r *testdep.RedisServer) { r.Do("FLUSHALL") }),
		Kill:  each((*testdep.RedisServer).Kill),
		Start: each((*testdep.RedisServer).Start),
		Keeps: true,
	}
}

func TestArchive(t *testing.T) {
	r := testdep.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	archivetest.Run(t, server(t, "redis://"+r.Addr+"/2#edge", []*testdep.RedisServer{r}))
}

func TestArchiveOfACluster(t *testing.T) {
	nodes := testdep.RedisCluster(t, 3, 0, "--appendonly", "yes", "--appendfsync", "always")
	s := server(t, "redis-cluster://"+nodes[0].Addr+","+nodes[1].Addr, nodes)
	s.Keeps = true
	archivetest.Run(t, s)
}

func TestArchiveOfSentinels(t *testing.T) {
	servers, sentinels := testdep.RedisSentinel(t, 1, "--appendonly", "yes", "--appendfsync", "always")
	s := server(t, "redis-sentinel://"+sentinels[0].Addr+","+sentinels[1].Addr+"/mymaster", servers[:1])
	archivetest.Run(t, s)
}

// Without messages, which a user may not be allowed to send or hear, news come by looks.
func TestWithoutMessages(t *testing.T) {
	r := testdep.Redis(t)
	r.Do("ACL", "SETUSER", "tidegate", "on", ">se@cret", "~tg:*", "resetchannels",
		"+evalsha", "+eval", "+time", "+del", "+llen", "+lindex", "+lrange", "+rpush", "+ltrim", "+expire", "+hello", "+ping")
	r.Do("ACL", "SETUSER", "default", "off")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("se@cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := open(t, Config{URL: "redis://" + r.Addr, Username: "tidegate", PasswordFile: file})
	defer a.Close()
	b := &source.Bundle{Files: map[string][]byte{"rules.yaml": []byte("rules: []")}}
	first, err := a.Publish(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	waits := open(t, Config{URL: "redis://tidegate:se%40cret@" + r.Addr})
	defer waits.Close()
	waits.alive = time.Minute
	looks := &lookedAt{Shelf: waits.shelf}
	waits.shelf = looks
	got := make(chan string, 1)
	go func() {
		b, err := waits.Next(t.Context(), first)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- b.Revision
	}()
	testdep.Eventually(t, "it has looked, and waits", func() bool { return looks.n.Load() > 0 })
	second, err := a.Publish(t.Context(), b, first)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case revision := <-got:
		if revision != second {
			t.Errorf("got %s, want %s", revision, second)
		}
	case <-time.After(time.Minute):
		t.Error("it does not notice")
	}
}

// lookedAt counts the looks at a shelf.
type lookedAt struct {
	chain.Shelf
	n atomic.Int64
}

func (l *lookedAt) Newest(ctx context.Context) (chain.Version, error) {
	defer l.n.Add(1)
	return l.Shelf.Newest(ctx)
}

// With messages, nobody waits for the next look. The permissions are those of docs/redis.md.
func TestMessagesWake(t *testing.T) {
	r := testdep.Redis(t)
	r.Do("ACL", "SETUSER", "tidegate", "on", ">secret", "~tg:*", "resetchannels", "&tg:shelf:*", "+subscribe", "+unsubscribe", "+publish",
		"+evalsha", "+eval", "+time", "+del", "+llen", "+lindex", "+lrange", "+rpush", "+ltrim", "+expire", "+hello", "+ping")
	r.Do("ACL", "SETUSER", "default", "off")
	url := "redis://tidegate:secret@" + r.Addr
	a, waits := open(t, Config{URL: url}), open(t, Config{URL: url})
	defer a.Close()
	defer waits.Close()
	waits.poll, waits.alive = time.Hour, time.Hour
	b := &source.Bundle{Files: map[string][]byte{"rules.yaml": []byte("rules: []")}}
	have, err := a.Publish(t.Context(), b, "")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := waits.Next(t.Context(), have)
		got <- err
	}()
	end := time.After(time.Minute)
	for head := have; ; { // it may not listen yet
		if head, err = a.Publish(t.Context(), b, head); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
			return
		case <-end:
			t.Fatal("nobody is woken")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// What somebody else wrote is an error that says where.
func TestStrangeVersions(t *testing.T) {
	r := testdep.Redis(t)
	a := open(t, Config{URL: "redis://" + r.Addr})
	defer a.Close()
	b := &source.Bundle{Files: map[string][]byte{"rules.yaml": []byte("rules: []")}}
	if _, err := a.Publish(t.Context(), b, ""); err != nil {
		t.Fatal(err)
	}
	key := "tg:shelf:rules:rules"
	good := r.Do("LINDEX", key, "-1")
	for _, junk := range []string{"x", strings.Replace(good, "digest", "gidest", 1), strings.Replace(good, `"digest":"`, `"main":"../x","digest":"`, 1), good[:len(good)-1]} {
		r.Do("LSET", key, "-1", junk)
		if got, err := a.Next(t.Context(), ""); err == nil {
			t.Errorf("%s: %+v", junk, got)
		}
	}
	r.Do("LSET", key, "-1", strings.Replace(good, `"digest":"`, `"main":"rules.yaml","digest":"`, 1))
	if got, err := a.Next(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "not those that were published") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNames(t *testing.T) {
	f := func(url, want, wrong string) {
		t.Helper()
		err := Check(url)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %q", url, err, wrong)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			return
		}
		a := open(t, Config{URL: url})
		defer a.Close()
		if a.Name() != want {
			t.Errorf("%s is called %s, want %s", url, a.Name(), want)
		}
	}
	f("redis://host", "redis://host#rules", "")
	f("rediss://ann:secret@host:6380/3?prefix=limits#edge", "rediss://host:6380/3#edge", "")
	f("redis-sentinel://:secret@a,b/mymaster?sentinel_password=secret", "redis-sentinel://a,b/mymaster#rules", "")
	f("redis-cluster://a:1,b:2#x", "redis-cluster://a:1,b:2#x", "")
	f("unix://ann:secret@/run/redis.sock#x", "unix:///run/redis.sock#x", "")
	f("redis://host#", "", "is not the name of a rule set")
	f("redis://host#a/b", "", "is not the name of a rule set")
	f("redis://host#"+strings.Repeat("a", 65), "", "is not the name of a rule set")
	f("redis://:secret@host/x", "", "want a number")
}
