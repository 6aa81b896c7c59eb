package arch

import "slices"

// A rule forbids packages to import something, or to use a name of it.
//
// Patterns are read in order, the last that matches wins, and "!" takes back.
// "./store/memory" is a package of this module, "./store/..." it and what is
// below, "." the root package, "module" any package of another module, "net/..."
// one of the standard library and what is below.
type rule struct {
	from  []string // who
	not   []string // may not import this
	use   []string // nor use these: "time.Now", or "go" for a go statement
	tests bool     // test files are held to it as well
	why   string
}

// wire are the front ends that speak a protocol.
var wire = []string{"./internal/front/gateway/...", "./internal/front/admin/...", "./internal/front/rls/...", "./internal/front/rlqs/...", "./internal/front/checkapi/...", "./internal/front/resp/..."}

// readsClock are the names of package time that read a clock or wait for it.
var readsClock = []string{
	"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc",
	"time.Tick", "time.NewTicker", "time.NewTimer",
}

// table is what docs/design.md, "Who imports whom", rules out.
var table = append(apart(wire), []rule{
	{
		from: []string{"."},
		not:  []string{"./...", "module"},
		why:  "the root package holds the shared words; whoever imports it gets the standard library and nothing else",
	},
	{
		from: []string{"./internal/algo/..."},
		not:  []string{"./...", "!.", "!./internal/algo/...", "module"},
		why:  "algorithms know limits and nothing of stores, rules or front ends",
	},
	{
		from: []string{"./internal/algo/..."},
		not:  []string{"context", "crypto/rand", "io/...", "log/...", "math/rand/...", "net/...", "os/...", "sync/...", "syscall"},
		use:  append([]string{"go"}, readsClock...),
		why:  "algorithms are pure functions of (state, now, cost): no clock, lock, goroutine, chance or I/O, so that Go and Lua agree and traces replay",
	},
	{
		from: []string{"./store/..."},
		not:  []string{"./...", "!.", "!./internal/algo/...", "!./internal/lang/bounded", "!./internal/lang/redisurl", "!./store/redis/internal/rediswire", "!./internal/chain"},
		why:  "a store turns checks into decisions; it knows no rules and no front end, and the stores do not know each other",
	},
	{
		from: []string{"./store/memory/...", "./store/storetest/..."},
		not:  []string{"module"},
		why:  "five lines in one process must not bring a dependency",
	},
	{
		from: []string{"./store/memory/..."},
		use:  []string{"go", "time.AfterFunc", "time.Tick", "time.NewTicker", "time.NewTimer"},
		why:  "the memory store has no goroutine of its own, so that it works in users' synctest bubbles and needs no Close",
	},
	{
		from: []string{"./httplimit/..."},
		not:  []string{"./...", "!.", "!./httplimit/...", "!./internal/lang/jsonvalue", "!./internal/lang/formvalue", "!./internal/lang/sleep", "module"},
		why:  "the middleware renders decisions of any store; it makes none and brings no dependency",
	},
	{
		from: []string{"./client/..."},
		not:  []string{"./...", "!.", "!./client/...", "!./httplimit", "!./internal/lang/usage", "!./internal/lang/sleep", "!./internal/chain", "!./internal/chain/queue", "module"},
		why:  "a program that is limited brings its own store, or none, and gets no dependency",
	},
	{
		from: []string{"./internal/lang/bounded/...", "./internal/lang/durable/...", "./internal/lang/redisurl/...", "./internal/lang/rulepack/...", "./internal/lang/route/...", "./internal/lang/jsonvalue/...", "./internal/lang/formvalue/...", "./internal/lang/diag/...", "./internal/lang/sleep/...", "./internal/dev/marked/...", "./store/redis/internal/rediswire/..."},
		not:  []string{"./...", "module"},
		why:  "these know strings and numbers and nothing of limits: whoever needs them must not get more",
	},
	{
		from: []string{"./internal/lang/yamltree/..."},
		not:  []string{"./...", "!./internal/lang/diag", "!./internal/lang/yamltree/...", "module"},
		why:  "a file is read before anybody knows what it is about",
	},
	{
		from: []string{"./internal/lang/rulefile/..."},
		not:  []string{"./...", "!.", "!./internal/lang/diag", "!./internal/lang/yamltree", "!./internal/lang/route", "!./internal/lang/bounded", "!./internal/lang/rulefile/..."},
		why:  "what was written is one thing, how requests are matched another: rules compiles a file, not the other way round",
	},
	{
		from: []string{"./internal/lang/domainfile/..."},
		not:  []string{"./...", "!.", "!./internal/lang/diag", "!./internal/lang/yamltree", "!./internal/lang/rulefile", "module"},
		why:  "it reads another language with the notation of rule files; how descriptors are matched is for rules/envoy",
	},
	{
		from: []string{"./rules/envoy"},
		not:  []string{"./...", "!.", "!./internal/lang/diag", "!./internal/lang/domainfile", "module"},
		why:  "a configuration of envoyproxy/ratelimit can be used without gRPC, and without anything that serves",
	},
	{
		from: []string{"./rules"},
		not:  []string{"./...", "!.", "!./internal/lang/diag", "!./internal/lang/rulefile", "!./internal/lang/route", "!./internal/lang/jwt", "!./internal/lang/apikey", "!./internal/lang/jsonvalue", "!./rules/envoy"},
		why:  "rules turn requests into checks; they count nothing and answer nobody",
	},
	{
		from: []string{"./internal/lang/apikey/..."},
		not:  []string{"./...", "!./internal/lang/bounded", "!./internal/lang/diag", "!./internal/lang/durable", "module"},
		why:  "a file of keys is read and written without anybody who counts",
	},
	{
		from: []string{"./internal/chain"},
		not:  []string{"./...", "!.", "module"},
		why:  "what layers and stores agree on knows neither of them",
	},
	{
		from: []string{"./internal/chain/queue/..."},
		not:  []string{"./...", "!.", "!./internal/algo/...", "!./internal/chain", "!./internal/chain/queue", "module"},
		why:  "a line is a store around a store, whatever the store and whoever waits",
	},
	{
		from: []string{"./fleet/..."},
		not:  []string{"./...", "!.", "!./internal/chain/...", "!./internal/lang/redisurl", "!./store/redis", "!./store/memory"},
		why:  "it wires the chain in front of Redis for programs and for the command alike; it knows no rules and no front end",
	},
	{
		from: []string{"./internal/serve/handover/..."},
		not:  []string{"./...", "!./internal/serve/handover/...", "module"},
		why:  "sockets pass from process to process, whoever listens on them",
	},
	{
		from: []string{"./internal/chain/board/..."},
		not:  []string{"./...", "!./internal/chain/board/...", "!./internal/chain", "!./internal/lang/durable", "!.", "module"},
		why:  "it carries records and knows neither what they say nor Redis",
	},
	{
		from: []string{"./internal/chain/registry/..."},
		not:  []string{"./...", "!./internal/chain/registry/...", "!./internal/chain", "module"},
		why:  "it counts who is there, whatever they share and wherever the list is",
	},
	{
		from: []string{"./internal/chain/node/..."},
		not:  []string{"./...", "!.", "!./internal/chain", "!./internal/chain/share", "!./internal/algo/...", "!./store/memory", "module"},
		why:  "it stands around any store that a fleet shares; the one it falls back to is the memory store",
	},
	{
		from: []string{"./internal/chain/split/..."},
		not:  []string{"./...", "!.", "!./internal/chain", "!./internal/chain/share", "!./internal/algo/...", "!./store/memory", "module"},
		use:  []string{"go"},
		why:  "it stands around any store, counts in the memory store, and is told how many instances there are",
	},
	{
		from: []string{"./internal/chain/share/..."},
		not:  []string{"./...", "!.", "module"},
		why:  "limits of other sizes, whoever counts by them",
	},
	{
		from: []string{"./internal/telemetry/outcome/..."},
		not:  []string{"./...", "!.", "module"},
		why:  "it has words for decisions, whoever makes them and whoever tells of them",
	},
	{
		from: []string{"./internal/telemetry/logsink/..."},
		not:  []string{"./...", "module"},
		why:  "it takes lines of any log, and what is wrong with one must not depend on anything else",
	},
	{
		from: []string{"./internal/telemetry/...", "./internal/telemetry/pressure/..."},
		not:  []string{"./...", "!.", "!./internal/chain", "!./internal/lang/durable", "!./internal/telemetry/outcome", "!./internal/telemetry/...", "!./internal/telemetry/pressure/..."},
		why:  "what is measured is told to them; they ask nobody",
	},
	{
		from: wire,
		not:  []string{"./store/...", "./internal/algo/..."},
		why:  "front ends are handed a Store by the command, wrapped as the operator wants it",
	},
	{
		from: []string{"./internal/front/listen/..."},
		not:  []string{"./...", "module", "!golang.org/x/sys/unix"},
		why:  "it holds connections to limits, whatever they speak and whatever is decided about requests",
	},
	{
		from: []string{"./...", "!./cmd/..."},
		not:  []string{"./cmd/..."},
		why:  "commands wire the rest together; nothing is below them",
	},
	{
		from: []string{"./...", "!./store/storetest/...", "!./internal/dev/archivetest", "!./internal/dev/tallytest", "!./internal/dev/gracetest", "!./internal/dev/testdep", "!./internal/dev/edits", "!./internal/dev/rawh2", "!./internal/dev/readings", "!./internal/dev/openapi", "!./internal/dev/schematest", "!./internal/chain/sim"},
		not:  []string{"testing/...", "./store/storetest/...", "./internal/dev/archivetest", "./internal/dev/tallytest", "./internal/dev/gracetest", "./internal/dev/testdep", "./internal/dev/edits", "./internal/dev/rawh2", "./internal/dev/readings", "./internal/dev/openapi", "./internal/dev/schematest"},
		why:  "test helpers must not be linked into a user's program",
	},
	{
		from: []string{"./...", "!./internal/cli"},
		not:  []string{"./internal/chain/sim"},
		why:  "the simulator links package testing for its virtual time; only the command has it",
	},
	{
		from:  []string{"./..."},
		not:   []string{"./bench/..."},
		tests: true,
		why:   "bench is a module of its own, so that the rivals never enter the main go.mod",
	},
}...)

// apart forbids each of the packages to import the others.
func apart(packages []string) []rule {
	var rules []rule
	for _, p := range packages {
		rules = append(rules, rule{
			from: []string{p},
			not:  append(slices.Clone(packages), "!"+p),
			why:  "front ends do not import each other: what two of them need belongs below both",
		})
	}
	return rules
}
