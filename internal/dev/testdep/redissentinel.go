package testdep

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// RedisSentinel starts a Redis with replicas and as many Sentinels as there are of
// both, which know it as "mymaster". The master comes first of the servers. Nothing
// fails over because the machine is busy; a test of failovers calls [FailOverSoon].
func RedisSentinel(t testing.TB, replicas int, args ...string) (servers, sentinels []*RedisServer) {
	t.Helper()
	master := Redis(t, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
	host, port, _ := net.SplitHostPort(master.Addr)
	servers = append(servers, master)
	for range replicas {
		servers = append(servers, Redis(t, append([]string{"--replicaof", host + " " + port, "--repl-diskless-sync-delay", "0"}, args...)...))
	}
	for range servers {
		s := newRedis(t)
		_, own, _ := net.SplitHostPort(s.Addr)
		file := filepath.Join(filepath.Dir(s.Socket), "sentinel.conf") // it writes into it
		text := fmt.Sprintf("port %s\nlogfile %q\nsentinel monitor mymaster %s %s %d\nsentinel down-after-milliseconds mymaster %s\nsentinel failover-timeout mymaster 3000\n",
			own, s.log, host, port, len(servers)/2+1, steady)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.launch("redis-server", []string{file, "--sentinel"})
		s.wait("PONG", "PING")
		sentinels = append(sentinels, s)
	}
	for _, s := range servers[1:] {
		s.wait("master_link_status:up", "INFO", "replication")
	}
	for _, s := range sentinels {
		s.wait(fmt.Sprintf("slaves=%d,sentinels=%s", replicas, strconv.Itoa(len(sentinels))), "INFO", "sentinel")
	}
	return servers, sentinels
}
