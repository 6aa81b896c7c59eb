package testdep

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// RedisCluster starts a Redis Cluster of masters that share the slots, each with so
// many replicas. The masters come first. No node takes another for dead because the
// machine is busy; a test of failovers calls [FailOverSoon].
func RedisCluster(t testing.TB, masters, replicas int, args ...string) []*RedisServer {
	t.Helper()
	nodes := make([]*RedisServer, masters*(1+replicas))
	ports := make([]string, len(nodes))
	for i := range nodes {
		ports[i] = FreePort(t)
		nodes[i] = newRedis(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", ports[i],
			"--cluster-node-timeout", formingTimeout, "--repl-diskless-sync-delay", "0",
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
	for _, n := range nodes {
		n.Do("CONFIG", "SET", "cluster-node-timeout", steady)
	}
	return nodes
}

// formingTimeout is the cluster-node-timeout in milliseconds by which nodes find each
// other, and take each other for dead, soon.
const formingTimeout = "2000"

// steady is the time in milliseconds for which a server may be silent before others take
// it for dead, where nothing is to fail over.
const steady = "120000"

// FailOverSoon lets the nodes of a cluster, or Sentinels, take a server for dead when it
// is silent for a second or two.
func FailOverSoon(nodes []*RedisServer) {
	for _, n := range nodes {
		if strings.Contains(n.Do("INFO", "server"), "redis_mode:sentinel") {
			n.Do("SENTINEL", "SET", "mymaster", "down-after-milliseconds", "1000")
		} else {
			n.Do("CONFIG", "SET", "cluster-node-timeout", formingTimeout)
		}
	}
}
