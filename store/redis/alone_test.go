package redis

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// everyLaw is a limit of each algorithm.
func everyLaw(name string, events int64) (all []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.Quota,
		tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency,
	} {
		spec := tidegate.Spec{Name: name, Algorithm: a, Events: events, Period: time.Hour}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Month
		}
		all = append(all, tidegate.MustLimit(spec))
	}
	return all
}

// TestKeyOfAnotherType puts something else under a counter's key, for every algorithm and
// every way to ask: that question cannot be asked, and those that are sent with it can.
func TestKeyOfAnotherType(t *testing.T) {
	server := testdep.Redis(t)
	for i, alien := range [][]string{
		{"SET", "KEY", "hello"}, {"RPUSH", "KEY", "x"}, {"HSET", "KEY", "a", "b"}, {"SADD", "KEY", "x"}, {"ZADD", "KEY", "1", "x"},
	} {
		prefix := fmt.Sprint("alien", i)
		s := openTest(t, Config{URL: "redis://" + server.Addr + "?prefix=" + prefix})
		for _, l := range everyLaw("api", 5) {
			lim, err := s.compile(l)
			if err != nil {
				t.Fatal(err)
			}
			if l.Algorithm == tidegate.Concurrency && alien[0] == "ZADD" || l.Algorithm == tidegate.SlidingLog && alien[0] == "RPUSH" {
				continue // that is what it is
			}
			server.Do("DEL", lim.name("bad"))
			server.Do(strings.Fields(strings.Replace(strings.Join(alien, " "), "KEY", lim.name("bad"), 1))...)
			one := []tidegate.Check{{Key: "bad", Limit: l, Cost: 1}}
			if _, err := s.Take(t.Context(), one, 1); !errors.Is(err, tidegate.ErrCannotAsk) {
				t.Errorf("%s on %s: %v, want ErrCannotAsk", alien[0], l, err)
			}
			if l.Algorithm == tidegate.Concurrency {
				continue
			}
			asks := asksOf(tidegate.Check{Key: "a", Limit: l, Cost: 1}, one[0], tidegate.Check{Key: "b", Limit: l, Cost: 1})
			if err := in(s).TakeBatch(t.Context(), asks); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(asks[1].Err, tidegate.ErrCannotAsk) || asks[0].Err != nil || asks[2].Err != nil || !asks[0].Granted.OK || !asks[2].Granted.OK {
				t.Errorf("%s on %s, with others: %+v, want an error of the second alone", alien[0], l, asks)
			}
		}
	}
}

// asksOf are asks for one copy of each check.
func asksOf(checks ...tidegate.Check) (asks []chain.Ask) {
	for _, c := range checks {
		asks = append(asks, chain.Ask{Checks: []tidegate.Check{c}, Copies: 1})
	}
	return asks
}

// TestForbiddenCommand forbids one command at a time: laws that need it say so, with what
// to do about it, also out of a script; the others go on.
func TestForbiddenCommand(t *testing.T) {
	server := testdep.Redis(t)
	for i, command := range []string{"zadd", "zrange", "get", "setex", "expire"} {
		user := fmt.Sprint("user", i)
		server.Do("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", "-"+command)
		s := openTest(t, Config{URL: "redis://" + user + ":secret@" + server.Addr + "?prefix=" + user})
		failed := 0
		for _, l := range everyLaw("api", 5) {
			check := tidegate.Check{Key: "ann", Limit: l, Cost: 1}
			_, err := s.Take(t.Context(), []tidegate.Check{check}, 1)
			asks := asksOf(check, tidegate.Check{Key: "bob", Limit: l, Cost: 1})
			if l.Algorithm != tidegate.Concurrency {
				_ = in(s).TakeBatch(t.Context(), asks)
				if (err == nil) != (asks[0].Err == nil) {
					t.Errorf("without %s, %s: %v alone, and %v with others", command, l, err, asks[0].Err)
				}
			}
			for _, err := range []error{err, asks[0].Err} {
				if err == nil {
					continue
				}
				failed++
				if !errors.Is(err, tidegate.ErrCannotAsk) || !strings.Contains(err.Error(), "the user needs to") {
					t.Errorf("without %s, %s: %v, want ErrCannotAsk and what to do", command, l, err)
				}
			}
		}
		if failed == 0 {
			t.Errorf("no law needs %s: the test has lost its point", command)
		}
	}
}

// TestClassify has errors of all versions, about the server or about one question.
func TestClassify(t *testing.T) {
	f := func(text, advice string, alone bool) {
		t.Helper()
		if got := classify(text); got.oneRequest != alone || !strings.Contains(got.advice, advice) || advice == "" && got.advice != "" {
			t.Errorf("%s: alone %t, %q; want %t, %q", text, got.oneRequest, got.advice, alone, advice)
		}
	}
	const whose, script = "something else", "the user needs to"
	f("WRONGTYPE Operation against a key holding the wrong kind of value", whose, true)
	f("WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on @user_script:12.", whose, true)
	f("ERR Error running script (call to f_1f): @user_script:12: WRONGTYPE Operation against a key holding the wrong kind of value", whose, true)
	f("ERR Error running script (call to f_1f): @user_script:12: @user_script: 12: -WRONGTYPE Operation against", whose, true)
	f("NOPERM this user has no permissions to access one of the keys used as arguments", script, true)
	f("NOPERM this user has no permissions to run the 'rpush' command", script, true)
	f("ERR ACL failure in script: User a has no permissions to run the 'rpush' command script: 1f, on @user_script:3.", script, true)
	f("ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:3.", script, true)
	f("ERR Error running script (call to f_1f): @user_script:3: @user_script: 3: The user executing the script can't run this command or subcommand", script, true)
	f("NOPERM this user has no permissions to run the 'evalsha' command", script, false)
	f("NOPERM User default has no permissions to run the 'eval' command", script, false)
	f("ERR user_script:9: data string too short script: 1f, on @user_script:9.", whose, true)
	f("ERR Unknown Redis command called from script script: 1f, on @user_script:1.", "disabled", true)
	f("OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:9.", "raise maxmemory", false)
	f("ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.", "raise maxmemory", false)
	f("READONLY You can't write against a read only replica. script: 1f, on @user_script:9.", "replica", false)
	f("ASK 1234 127.0.0.1:7001", "redis-cluster://", false)
	f("ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -READONLY You can't write", "replica", false)
	f("MISCONF Redis is configured to save RDB snapshots, but", "disk", false)
	f("NOREPLICAS Not enough good replicas to write.", "replicas", false)
	f("LOADING Redis is loading the dataset in memory", "reading its data", false)
	f("BUSY Redis is busy running a script. You can only call SCRIPT KILL", "SCRIPT KILL", false)
	f("MASTERDOWN Link with MASTER is down", "lost its master", false)
	f("CLUSTERDOWN The cluster is down", "slots without", false)
	f("CROSSSLOT Keys in request don't hash to the same slot", "redis-cluster://", false)
	f("TRYAGAIN Multiple keys request during rehashing of slot", "moved", true)
	f("NOAUTH Authentication required.", "password", false)
	f("WRONGPASS invalid username-password pair or user is disabled.", "is wrong", false)
	f("ERR DB index is out of range", "database", false)
	f("ERR max number of clients reached", "maxclients", false)
	f("ERR AUTH <password> called without any password configured for the default user.", "no password", false)
	f("ERR unknown command 'EVALSHA', with args beginning with:", "runs no scripts", false)
	f("ERR unknown command `EVALSHA`, with args beginning with:", "runs no scripts", false)
	f("ERR something new", "", false)
}

// TestTroubleIsTold opens what cannot work, and wants a sentence that says what to do,
// although callers have no time to wait for it.
func TestTroubleIsTold(t *testing.T) {
	cert, key := keyPair(t)
	port := testdep.FreePort(t)
	server := testdep.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	web := newWeb(t)
	f := func(url, want string) {
		t.Helper()
		s := openTest(t, Config{URL: url})
		var err error
		eventually(t, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, err = s.Take(ctx, []tidegate.Check{one100}, 1); err == nil {
				t.Fatalf("%s works", url)
			}
			if why := in(s).Trouble(); why == nil || !strings.Contains(why.Error(), want) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%s: %v; trouble: %v; want %q", url, err, why, want)
			}
			return nil
		})
	}
	f("rediss://"+server.Addr, "does not speak TLS")
	f("redis://127.0.0.1:"+port, "TLS")
	f("redis://"+server.Addr+"/99", "names a database")
	f("redis://"+web, "it speaks HTTP")
	f("rediss://"+web, "does not speak TLS")
	server.Do("CONFIG", "SET", "requirepass", "secret")
	f("redis://"+server.Addr, "give a password")
	f("redis://:wrong@"+server.Addr, "is wrong")
	s := openTest(t, Config{URL: "redis://:secret@" + server.Addr})
	mustTake(t, s, 1, one100)
	if err := in(s).Trouble(); err != nil {
		t.Errorf("all is well, and %v", err)
	}
}

// newWeb is a server that speaks HTTP.
func newWeb(t *testing.T) (addr string) {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
