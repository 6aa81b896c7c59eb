package main

import (
	"time"

	"tidegate.dev/tidegate/internal/testdep"
)

// rows in the order of the table.
var rows = []row{
	{
		name: "kill -9", what: "Redis is killed, and starts again from its append-only file",
		site: single(onDisk...), affected: nodes,
		fault: once(func(s *stage) { s.servers[0].Kill() }),
		mend:  func(s *stage) { s.servers[0].Start() },
	},
	{
		name: "restart empty", what: "Redis is killed, and starts again with nothing",
		site: single(), affected: nodes, bursts: 1,
		fault: once(func(s *stage) { s.servers[0].Kill() }),
		mend:  func(s *stage) { s.servers[0].Start() },
	},
	{
		name: "SIGSTOP", what: "Redis stands still for 10 s, its connections stay",
		site: single(), affected: nodes, lasts: 10 * time.Second,
		fault: once(func(s *stage) { s.servers[0].Pause() }),
		mend:  func(s *stage) { s.servers[0].Resume() },
	},
	{
		name: "connection refused", what: "connections are cut and new ones refused",
		site: proxied, affected: nodes,
		fault: once(turn(refusing)), mend: turn(passing),
	},
	{
		name: "silent", what: "connections are accepted and never answered",
		site: proxied, affected: nodes,
		fault: once(turn(silent)), mend: turn(passing),
	},
	{
		name: "latency", what: "every answer comes 200 ms late",
		site: proxied, affected: nodes,
		fault: once(turn(delayed)), mend: turn(passing),
	},
	{
		name: "out of memory", what: "OOM under noeviction: every script that writes fails",
		site: single("--maxmemory-policy", "noeviction"), affected: nodes,
		fault: once(func(s *stage) { s.servers[0].Do("CONFIG", "SET", "maxmemory", "1") }),
		mend:  func(s *stage) { s.servers[0].Do("CONFIG", "SET", "maxmemory", "0") },
	},
	{
		name: "READONLY", what: "Redis becomes a replica: reading works, writing does not",
		site: single(), affected: nodes,
		fault: once(func(s *stage) { s.servers[0].Do("REPLICAOF", "127.0.0.1", testdep.FreePort(s)) }),
		mend:  func(s *stage) { s.servers[0].Do("REPLICAOF", "NO", "ONE") },
	},
	{
		name: "wrong password", what: "another password is set and all connections are closed",
		site: single(), affected: nodes,
		fault: once(lockOut), mend: letIn,
	},
	{
		name: "SCRIPT FLUSH", what: "Redis forgets its scripts, four times a second",
		site:  single(),
		fault: every(250*time.Millisecond, func(s *stage) { s.servers[0].Do("SCRIPT", "FLUSH") }), mend: nothing,
	},
	{
		name: "flapping", what: "twice a second Redis is away for 250 ms",
		site: proxied, affected: nodes,
		fault: flap, mend: turn(passing),
	},
	{
		name: "one of three cut off", what: "one node hears nothing from Redis, the others are well",
		site: proxied, affected: 1, over: 1.0 / nodes,
		fault: once(func(s *stage) { s.must(s.proxies[0].set(silent)) }), mend: turn(passing),
	},
	{
		name: "Sentinel failover", what: "the master of 1+2 is killed, the Sentinels make a replica the master",
		site: sentinel, affected: nodes, heals: true, lasts: 10 * time.Second,
		fault: once(func(s *stage) { s.servers[0].Kill() }),
	},
	{
		name: "Cluster failover", what: "of 3+3, the master with the hot key is killed, its replica takes over",
		site: cluster, affected: nodes, heals: true, lasts: 12 * time.Second,
		fault: once(func(s *stage) { s.holder(hotKey).Kill() }),
	},
	{
		name: "resharding", what: "the slot of the hot key moves to another master and back: ASK, then MOVED",
		site:  cluster,
		fault: reshard, mend: nothing,
	},
}

func nothing(*stage) {}

// once does something and lets it be.
func once(do func(*stage)) func(*stage, time.Duration) {
	return func(s *stage, lasts time.Duration) {
		do(s)
		s.pause(lasts)
	}
}

// every does something again and again.
func every(pause time.Duration, do func(*stage)) func(*stage, time.Duration) {
	return func(s *stage, lasts time.Duration) {
		for end := time.Now().Add(lasts); time.Now().Before(end); s.pause(pause) {
			do(s)
		}
	}
}

// turn sets the mood of all proxies.
func turn(to mood) func(*stage) {
	return func(s *stage) {
		for _, p := range s.proxies {
			s.must(p.set(to))
		}
	}
}

func flap(s *stage, lasts time.Duration) {
	every(250*time.Millisecond, func(s *stage) {
		turn(refusing)(s)
		s.pause(250 * time.Millisecond)
		turn(passing)(s)
	})(s, lasts)
}

// lockOut sets a password that no node knows.
func lockOut(s *stage) { s.talk("CONFIG SET requirepass changed", "CLIENT KILL TYPE normal") }

func letIn(s *stage) { s.talk("AUTH changed", `CONFIG SET requirepass ""`) }
