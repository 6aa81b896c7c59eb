package main

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// onDisk makes Redis keep what it acknowledged.
var onDisk = []string{"--appendonly", "yes", "--appendfsync", "always"}

// single is one Redis.
func single(args ...string) func(*stage) []string {
	return func(s *stage) []string {
		s.servers = []*testdep.RedisServer{testdep.Redis(s, args...)}
		return []string{"redis://" + s.servers[0].Addr}
	}
}

// proxied is one Redis, with a proxy before it for each node.
func proxied(s *stage) (urls []string) {
	single()(s)
	for range nodes {
		p, err := newProxy(s.servers[0].Addr)
		s.must(err)
		s.Cleanup(func() { _ = p.Close() })
		s.proxies = append(s.proxies, p)
		urls = append(urls, "redis://"+p.address)
	}
	return urls
}

func sentinel(s *stage) []string {
	servers, sentinels := testdep.RedisSentinel(s, 2)
	testdep.FailOverSoon(sentinels)
	s.servers = servers
	return []string{"redis-sentinel://" + addresses(sentinels) + "/mymaster"}
}

const masters = 3

func cluster(s *stage) []string { return clustered(s) }

// clustered returns a Cluster of three masters with a replica each, which soon takes over.
func clustered(s *stage, args ...string) []string {
	urls := steadyCluster(s, args...)
	testdep.FailOverSoon(s.servers)
	return urls
}

// steadyCluster returns a Cluster whose masters may be silent for two minutes.
func steadyCluster(s *stage, args ...string) []string {
	s.servers = testdep.RedisCluster(s, masters, 1, args...)
	return []string{"redis-cluster://" + addresses(s.servers)}
}

func addresses(of []*testdep.RedisServer) string {
	var all []string
	for _, r := range of {
		all = append(all, r.Addr)
	}
	return strings.Join(all, ",")
}

// talk sends commands to the first server, on one connection.
func (s *stage) talk(commands ...string) {
	conn, in := s.dial()
	defer conn.Close()
	s.must(conn.SetDeadline(time.Now().Add(5 * time.Second)))
	for _, c := range commands {
		_, err := fmt.Fprintf(conn, "%s\r\n", c)
		s.must(err)
		answer, err := in.ReadString('\n')
		s.must(err)
		if answer[0] == '-' {
			s.Fatalf("%s: %s", c, answer)
		}
	}
}

// dial connects to the first server.
func (s *stage) dial() (net.Conn, *bufio.Reader) {
	conn, err := net.DialTimeout("tcp", s.servers[0].Addr, time.Second)
	s.must(err)
	return conn, bufio.NewReader(conn)
}

// hotKey is what the key of the rule hot has in it.
const hotKey = ":hot:"

// keyLike finds a key with part in it, and the master that has it. It waits a while: a node that could not
// ask in time charges later.
func (s *stage) keyLike(part string) (key string, at *testdep.RedisServer) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); s.pause(50 * time.Millisecond) {
		for _, r := range s.servers[:min(masters, len(s.servers))] {
			for found := range strings.Lines(r.Do("KEYS", "*"+part+"*")) {
				return strings.TrimSpace(found), r
			}
		}
	}
	s.Fatalf("no master has a key with %s in it", part)
	return "", nil
}

// holder returns the master that has a key with part in it.
func (s *stage) holder(part string) *testdep.RedisServer {
	_, at := s.keyLike(part)
	return at
}

// reshard moves the slot of the hot key to another master and back, again and again, so slowly
// that the key is asked for meanwhile.
func reshard(s *stage, lasts time.Duration) {
	key, from := s.keyLike(hotKey)
	slot := from.Do("CLUSTER", "KEYSLOT", key)
	to := s.servers[0]
	if to == from {
		to = s.servers[1]
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); from, to = to, from {
		s.moveSlot(slot, from, to)
	}
}

// moveSlot moves a slot as redis-cli does: first its keys, then what the masters say of it.
func (s *stage) moveSlot(slot string, from, to *testdep.RedisServer) {
	const half = 700 * time.Millisecond
	source, target := from.Do("CLUSTER", "MYID"), to.Do("CLUSTER", "MYID")
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	host, port, _ := strings.Cut(to.Addr, ":")
	for keys := from.Do("CLUSTER", "GETKEYSINSLOT", slot, "100"); keys != ""; keys = from.Do("CLUSTER", "GETKEYSINSLOT", slot, "100") {
		command := []string{"MIGRATE", host, port, "", "0", strconv.Itoa(int(half / time.Millisecond)), "KEYS"}
		from.Do(append(command, strings.Fields(keys)...)...)
	}
	s.pause(half) // the old master answers ASK
	to.Do("CLUSTER", "SETSLOT", slot, "NODE", target)
	from.Do("CLUSTER", "SETSLOT", slot, "NODE", target)
	s.pause(half) // and now MOVED
}
