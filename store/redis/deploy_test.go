package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

// deployed copies deploy/redis to where its files may be written.
func deployed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/redis")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // files include each other by name
	return dir
}

// mustBe wants a server to have a setting.
func mustBe(t *testing.T, server *testdep.RedisServer, name, want string) {
	t.Helper()
	if got := strings.TrimPrefix(server.Do("CONFIG", "GET", name), name+"\n"); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

// What deploy/redis has starts, and is what it says.
func TestDeployed(t *testing.T) {
	dir := deployed(t)
	single := testdep.RedisFile(t, "redis.conf", "--dir", t.TempDir())
	mustBe(t, single, "maxmemory-policy", "noeviction")
	mustBe(t, single, "appendonly", "yes")
	mustTake(t, openTest(t, Config{URL: "redis://" + single.Addr}), 1, one100)

	master := testdep.RedisFile(t, "sentinel-redis.conf", "--dir", t.TempDir())
	mustBe(t, master, "min-replicas-to-write", "1")
	mustBe(t, master, "maxmemory-policy", "noeviction")
	s := openTest(t, Config{URL: "redis://" + master.Addr})
	wantError(t, s, "NOREPLICAS") // by itself it admits nothing
	host, port, _ := strings.Cut(master.Addr, ":")
	replica := testdep.RedisFile(t, "sentinel-redis.conf", "--dir", t.TempDir(), "--replicaof", host+" "+port)
	testdep.Eventually(t, replica.Addr+" follows its master", func() bool { return strings.Contains(master.Do("INFO", "replication"), "state=online") })
	mustTake(t, s, 1, one100)

	node := testdep.RedisFile(t, "cluster.conf", "--dir", t.TempDir(), "--cluster-port", testdep.FreePort(t))
	mustBe(t, node, "cluster-enabled", "yes")
	mustBe(t, node, "cluster-require-full-coverage", "no")
	mustBe(t, node, "maxmemory-policy", "noeviction")

	file := filepath.Join(dir, "sentinel.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "127.0.0.1 6379", host+" "+port)), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := testdep.RedisFile(t, file, "--sentinel")
	if got := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"); got != host+"\n"+port {
		t.Errorf("the Sentinel says that the master is %q", got)
	}
	mustTake(t, openTest(t, Config{Master: "mymaster", Addrs: []string{sentinel.Addr}}), 1, one100)
}

// users is the file of users with a default one who may ask the server on.
func users(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "user default off", "user default on nopass ~* &* +@all", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user with what deploy/redis/users.acl lets them do can do all that a Store does.
func TestDeployedUser(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	own, err := os.ReadFile("../../deploy/redis/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	if page, err := os.ReadFile("../../docs/redis.md"); err != nil || !strings.Contains(string(page), "```text\n"+string(own)+"```") {
		t.Errorf("docs/redis.md does not show deploy/redis/users.acl as it is: %v", err)
	}
	server := testdep.Redis(t, "--aclfile", users(t))
	c := Config{URL: "redis://tidegate:CHANGE-ME@" + server.Addr, Deadline: patient}
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		server.Do("FLUSHALL")
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, storetest.Brief())
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server.Do("FLUSHALL")
	testTable(t, s)
	told(t, s, "ann", "{}", time.Minute)
	if got := listed(t, s); got != "ann={}" {
		t.Errorf("listed %q", got)
	}
	if err := in(s).Leave(t.Context(), "ann"); err != nil {
		t.Error(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for _, err := range s.Keys(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
	}
	other := openTest(t, c) // whose keys are not tg:
	wantError(t, other, "the user needs to read, write and run scripts on the keys of the prefix")
}

func TestDeployedUserOfACluster(t *testing.T) {
	t.Parallel()
	c := clusterOf(testdep.RedisCluster(t, 3, 1, "--aclfile", users(t)))
	c.Username, c.Password, c.Deadline = "tidegate", "CHANGE-ME", patient
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	testTable(t, s)
	for _, key := range []string{"ann", "bob", "cleo", "dan"} {
		mustTake(t, s, 1, threeSubjects(key, "10.0.0."+key, tidegate.SlidingLog, 5, 1000)...)
	}
	told(t, s, "ann", "{}", time.Minute)
	if got := listed(t, s); got != "ann={}" {
		t.Errorf("listed %q", got)
	}
}
