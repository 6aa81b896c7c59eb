package main

import (
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
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
		name: "surplus replies", what: "one time in forty Redis says +OK after its answer",
		site: proxied, affected: nodes, maybe: true,
		fault: once(turn(surplus)), mend: turn(passing),
	},
	{
		name: "flipped replies", what: "one time in forty a bit of an answer is another one",
		site: proxied, affected: nodes, maybe: true,
		fault: once(turn(flipped)), mend: turn(passing),
	},
	{
		name: "truncated replies", what: "one time in forty the end of an answer is missing",
		site: proxied, affected: nodes, maybe: true,
		fault: once(turn(truncated)), mend: turn(passing),
	},
	{
		name: "doubled replies", what: "one time in forty an answer comes twice",
		site: proxied, affected: nodes, maybe: true,
		fault: once(turn(doubled)), mend: turn(passing),
	},
	{
		name: "maxclients", what: "connections are closed, and new ones turned away: there are too many",
		site: single(), affected: nodes,
		fault: shutOut, mend: nothing,
	},
	{
		name: "CLIENT KILL", what: "all connections are closed, four times a second",
		site: single(), affected: nodes, maybe: true,
		fault: every(250*time.Millisecond, func(s *stage) { s.servers[0].Do("CLIENT", "KILL", "TYPE", "normal") }), mend: nothing,
	},
	{
		name: "DEBUG SLEEP", what: "once a second Redis stands still for 200 ms",
		site: single("--enable-debug-command", "yes"), affected: nodes, maybe: true,
		fault: every(800*time.Millisecond, func(s *stage) { s.servers[0].Do("DEBUG", "SLEEP", "0.2") }), mend: nothing,
	},
	{
		name: "forbidden command", what: "the user may not run RPUSH any more, which one rule needs",
		site: single(), rules: logRules, affected: nodes, partial: true,
		fault: once(func(s *stage) { s.servers[0].Do("ACL", "SETUSER", "default", "-rpush") }),
		mend:  func(s *stage) { s.servers[0].Do("ACL", "SETUSER", "default", "+rpush") },
	},
	{
		name: "key of another type", what: "somebody puts a list under the key of the rule of 100/s",
		site: single(), affected: nodes, partial: true, bursts: 1,
		fault: once(spoil), mend: unspoil,
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
		// Rules that keep two keys cannot be asked about while one may have moved: TRYAGAIN.
		name: "resharding", what: "the slot of the hot key moves to another master and back: ASK, then MOVED",
		site: cluster, affected: nodes, maybe: true,
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

// shutOut closes all connections and turns new ones away, but for one of its own.
func shutOut(s *stage, lasts time.Duration) {
	conn, in := s.dial()
	defer conn.Close()
	say := func(command string) {
		_, err := fmt.Fprintf(conn, "%s\r\n", command)
		s.must(err)
		answer, err := in.ReadString('\n')
		s.must(err)
		if answer[0] == '-' {
			s.Fatalf("%s: %s", command, answer)
		}
	}
	before := s.servers[0].Do("CONFIG", "GET", "maxclients")
	say("CONFIG SET maxclients 1")
	for end := time.Now().Add(lasts); time.Now().Before(end); s.pause(50 * time.Millisecond) {
		say("CLIENT KILL TYPE normal")
	}
	say("CONFIG SET maxclients " + strings.Fields(before)[1])
}

// spoil puts a list under the key of the rule hot.
func spoil(s *stage) {
	key, at := s.keyLike(hotKey)
	at.Do("RPUSH", "list", "what is this")
	at.Do("RENAME", "list", key) // at once: the gateways go on writing
}

func unspoil(s *stage) {
	key, at := s.keyLike(hotKey)
	at.Do("DEL", key)
}
