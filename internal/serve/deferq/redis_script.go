package deferq

import (
	"embed"
	"strings"

	"tidegate.dev/tidegate/internal/chain"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// newScript returns the concatenation of now.lua and the files as one script.
func newScript(files ...string) *chain.Script {
	var body strings.Builder
	for _, file := range append([]string{"now"}, files...) {
		text, err := scriptFiles.ReadFile("script/" + file + ".lua")
		if err != nil {
			panic("deferq: " + err.Error()) // it is embedded
		}
		body.Write(text)
	}
	return chain.NewScript(body.String())
}

var scripts = struct {
	room, add, turn, head, read, part, place, busy, again, end, retry, revive, forget, surplus, renew, old, list, stats, rules, append *chain.Script
}{
	room: newScript("room"), add: newScript("line", "room", "add"), turn: newScript("turn"), head: newScript("head"), read: newScript("read"),
	part: newScript("part"), place: newScript("place"), busy: newScript("busy"), again: newScript("again"), end: newScript("end"),
	retry: newScript("retry"), revive: newScript("line", "revive"), forget: newScript("forget"), surplus: newScript("surplus"), renew: newScript("renew"), old: newScript("old"),
	list: newScript("list"), stats: newScript("stats"), rules: newScript("rules"), append: newScript("append"),
}

// keyspace names the keys of what Redis keeps of one rule. They have the same tag, so that they are in
// one slot of a cluster and on one shard, and scripts reach all of them. No counter has a key like
// these, since theirs contain :{.
//
//	PREFIX:deferred{RULE}:turns       names of lines, by when somebody may look at them
//	PREFIX:deferred{RULE}:line:NAME   a line: a stream of IDs, with the group gateways
//	PREFIX:deferred{RULE}:lines       bytes of lines, by name
//	PREFIX:deferred{RULE}:entry:ID    an entry, and what became of it
//	PREFIX:deferred{RULE}:body:ID     the body of its request
//	PREFIX:deferred{RULE}:waiting     IDs of those that wait, by acceptance or revival
//	PREFIX:deferred{RULE}:done        IDs of those that are done, by when they ended, and :dead of those that are dead
//	PREFIX:deferred{RULE}:meta        how many wait, bytes of all, and bytes of those that have ended
//
// PREFIX:deferred:rules has the names of all rules that ever had entries.
type keyspace struct {
	rule, base string
}

func (ks *keyspace) key(kind string, more ...string) string {
	return strings.Join(append([]string{ks.base, kind}, more...), ":")
}

func (ks *keyspace) line(name string) string { return ks.key("line", name) }
func (ks *keyspace) entry(id string) string  { return ks.key("entry", id) }
func (ks *keyspace) body(id string) string   { return ks.key("body", id) }
