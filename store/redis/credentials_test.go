package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A password is changed in Redis and in its file: the next connection uses it, of whatever
// kind of Redis. The file may come after Redis, or be missing for a moment.
func TestPasswordIsReadAgain(t *testing.T) {
	t.Parallel()
	f := func(name string, servers []*testdep.RedisServer, c Config) {
		t.Run(name, func(t *testing.T) {
			all := func(command ...string) {
				for _, n := range servers {
					n.Do(command...)
				}
			}
			all("ACL", "SETUSER", "tidegate", "on", ">first", "~*", "+@all")
			file := filepath.Join(t.TempDir(), "password")
			write := func(password string) {
				if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("first")
			c.Username, c.PasswordFile = "tidegate", file
			s := openTest(t, c)
			mustTake(t, s, 1, one100)
			change := func() { all("CLIENT", "KILL", "USER", "tidegate") }

			all("ACL", "SETUSER", "tidegate", "<first", ">second")
			change()
			eventually(t, func() error { // it finds out that the file is out of date
				_, err := s.Take(t.Context(), []tidegate.Check{one100}, 1)
				if err == nil || !strings.Contains(err.Error(), "is wrong") {
					return errInvalidReply
				}
				return nil
			})
			write("second")
			eventually(t, func() error {
				_, err := s.Take(t.Context(), []tidegate.Check{one100}, 1)
				return err
			})
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			change()
			eventually(t, func() error {
				_, err := s.Take(t.Context(), []tidegate.Check{one100}, 1)
				return err
			})
		})
	}
	one := testdep.Redis(t)
	f("one", []*testdep.RedisServer{one}, Config{Addrs: []string{one.Addr}})
	nodes := testdep.RedisCluster(t, 3, 0)
	f("cluster", nodes, clusterOf(nodes))
	servers, sentinels := testdep.RedisSentinel(t, 1)
	c := sentinelsOf(sentinels)
	for _, n := range sentinels {
		n.Do("ACL", "SETUSER", "watcher", "on", ">watching", "~*", "&*", "+@all")
		n.Do("ACL", "SETUSER", "default", "resetpass", "-@all", "+ping", "+auth", "+hello")
	}
	c.SentinelUsername, c.SentinelPassword = "watcher", "watching"
	f("sentinel", servers, c)

	if _, err := Open(Config{Addrs: []string{one.Addr}, PasswordFile: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("a password file that is missing from the start is no mistake")
	}
}

// RESP3 is not needed: a server that knows no HELLO is spoken to in RESP2.
func TestWithoutHello(t *testing.T) {
	t.Parallel()
	hello := func(command []string) string {
		if strings.EqualFold(command[0], "HELLO") {
			return "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n"
		}
		return ""
	}
	server := testdep.Redis(t)
	s := openTest(t, Config{Addrs: []string{newMiddleman(t, server.Addr, hello).addr}})
	for _, l := range everyLaw("api", 50) {
		d := mustTake(t, s, 1, tidegate.Check{Key: "ann", Limit: l, Cost: 1})
		if err := s.Adjust(t.Context(), d.Receipt, []tidegate.Check{{Key: "ann", Limit: l, Cost: -1}}); !d.OK || err != nil {
			t.Errorf("%s: %+v, %v", l, d, err)
		}
	}
	nodes := testdep.RedisCluster(t, 3, 0)
	c := Config{Cluster: true}
	var men []*middleman
	for _, n := range nodes {
		m := newMiddleman(t, n.Addr, hello)
		men, c.Addrs = append(men, m), append(c.Addrs, m.addr)
	}
	announce(t, func(i int, command ...string) string { return nodes[i].Do(command...) }, men)
	s = openTest(t, c)
	awaitBatches(t, s, 3)
	for _, l := range countingLaws("api", 50) {
		takeBatches(t, s, l, 2)
	}
}
