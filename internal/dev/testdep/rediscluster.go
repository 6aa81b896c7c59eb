package testdep

import (
	"fmt"
	"net"
	"strconv"
	"testing"
)

// RedisCluster starts a Redis Cluster of masters that share the slots, each with so
// many replicas. The masters come first.
func RedisCluster(t testing.TB, masters, replicas int, args ...string) []*RedisServer {
	t.Helper()
	nodes := make([]*RedisServer, masters*(1+replicas))
	ports := make([]string, len(nodes))
	for i := range nodes {
		ports[i] = FreePort(t)
		nodes[i] = newRedis(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", ports[i],
			"--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
		}, args...)...)
		nodes[i].Start()
	}
	for i, n := range nodes {
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(16384*i/masters), strconv.Itoa(16384*(i+1)/masters-1))
		}
	}
	for i, n := range nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr)
		nodes[0].Do("CLUSTER", "MEET", host, port, ports[i+1])
	}
	for _, n := range nodes {
		n.wait(fmt.Sprintf("cluster_known_nodes:%d", len(nodes)), "CLUSTER", "INFO")
	}
	for i, n := range nodes[masters:] {
		id := nodes[i%masters].Do("CLUSTER", "MYID")
		n.wait(id, "CLUSTER", "NODES")
		n.Do("CLUSTER", "REPLICATE", id)
	}
	for _, n := range nodes {
		n.wait("cluster_state:ok", "CLUSTER", "INFO")
		n.wait("cluster_slots_ok:16384", "CLUSTER", "INFO")
	}
	for _, n := range nodes[masters:] {
		n.wait("master_link_status:up", "INFO", "replication")
	}
	return nodes
}
