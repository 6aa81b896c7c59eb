package arch

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/marked"
)

var update = flag.Bool("update", false, "write the table of imports into docs/design.md")

// edge is a package, what of this module it imports, and what for.
type edge struct{ from, to, why string }

// edges are all imports of one package of this module by another, tests aside. A new one
// is a decision: it gets a line here, and so does one that is gone.
var edges = []edge{
	{"cmd/tidegate", "internal/cli", "the command line is all of it"},
	{"internal/cli", "internal/serve", "the command serve"},
	{"internal/cli", "internal/config", "the command config, and the flags of serve"},
	{"internal/cli", "internal/lang/apikey", "the command api-keys"},
	{"internal/cli", "fleet", "the command fleet, which may ask Redis itself"},
	{"internal/cli", "internal/front/admin internal/telemetry/auditlog internal/telemetry/offenders", "commands of operators speak to the admin listener in its words"},
	{"internal/cli", "rules rules/lint rules/ruletest", "the commands lint, test and explain"},
	{"internal/cli", "rules/source internal/serve/origins internal/lang/rulepack", "the command rules: revisions in the sources that rules come from"},
	{"internal/cli", "internal/lang/rulediff", "the commands plan and ci"},
	{"internal/cli", "internal/cli/screen", "the command top, on a terminal"},
	{"internal/cli", "docs", "the pages of the checks, for code scanning"},
	{"internal/cli", "internal/chain/sim internal/lang/yamltree", "the command sim, and scenario files"},
	{"internal/cli", "internal/lang/describe internal/lang/diag internal/lang/rulefile internal/lang/bounded", "requests and files as operators write them"},
	{"internal/cli", "root httplimit store/memory", "explain puts a request through the middleware, on counters of its own"},

	{"internal/serve", "internal/front/gateway internal/front/admin internal/front/checkapi internal/front/resp internal/front/rls internal/front/rlqs internal/front/rlqs/ledger internal/front/desk internal/front/dashboard internal/front/slip internal/front/strict internal/front/listen", "the composition root knows every front end, and what serves them"},
	{"internal/serve", "fleet store/memory internal/chain internal/chain/board internal/chain/queue internal/chain/split", "and every store, with what stands before it"},
	{"internal/serve", "internal/config internal/telemetry internal/telemetry/accesslog internal/telemetry/auditlog internal/telemetry/fit internal/telemetry/logsink internal/telemetry/offenders internal/telemetry/pressure internal/telemetry/sampled internal/telemetry/series internal/telemetry/traces internal/serve/handover internal/serve/history internal/dev/demo", "and what a process has around it"},
	{"internal/serve", "root httplimit rules rules/envoy rules/source rules/source/xds internal/serve/origins", "and the rules"},
	{"internal/serve", "internal/serve/deferq", "and requests that are kept for later"},
	{"internal/serve/deferq", "root httplimit internal/chain", "requests as the middleware asks about them; a layer in front of the counters"},
	{"internal/serve", "store/redis", "where Redis is that keeps them"},
	{"internal/serve/deferq", "store/redis", "scripts that keep them in Redis, on a connection of their own"},
	{"internal/serve/deferq", "internal/lang/usage internal/lang/durable", "true costs in the answers to them; the name of their file lasts"},
	{"internal/serve/origins", "rules/source rules/source/redis rules/source/etcd internal/lang/bounded", "every place that rules come from, by its URL; certificates for it"},
	{"internal/serve", "internal/lang/bounded internal/lang/diag internal/lang/durable", "files of operators, and what is wrong with them"},

	{"internal/serve/history", "rules/source internal/lang/bounded internal/lang/durable", "sets of files as sources have them; its file"},
	{"internal/serve/history", "internal/chain internal/lang/rulepack", "in Redis, on a shelf of the store, packed as archives do"},

	{"internal/front/desk", "root", "questions to a gate"},
	{"internal/front/resp", "root internal/front/desk internal/front/question internal/front/strict", "the Redis protocol: questions that callers describe, and limits that they bring along"},
	{"internal/front/rls", "root internal/front/desk internal/front/question internal/front/strict rules/envoy", "Envoy's descriptors, held to rules of files or put to the desk"},
	{"internal/front/rls", "internal/chain", "an answer by the time that Envoy waits for it"},
	{"internal/front/rls", "httplimit", "the header of a slip"},
	{"internal/front/rlqs", "root internal/front/desk internal/front/question internal/front/strict rules/envoy", "buckets of Envoy, held to limits of files or of native rules"},
	{"internal/front/rlqs", "internal/front/rlqs/ledger", "which divides them"},
	{"internal/front/gateway", "root httplimit", "the gateway renders decisions as the middleware does"},
	{"internal/front/gateway", "internal/front/listen", "connections are held to limits in one place"},
	{"internal/front/gateway", "internal/front/strict", "it passes on no request that a rule and a server may understand differently"},
	{"internal/front/gateway", "internal/chain/queue", "it can hold a request while that waits in a queue"},
	{"internal/front/gateway", "internal/lang/usage internal/telemetry/accesslog", "true costs in responses; a line for each request"},
	{"internal/front/question", "root httplimit internal/front/strict", "a described request, inspected as at the gateway, with values found as the middleware finds them"},
	{"internal/front/checkapi", "internal/front/desk internal/front/question internal/front/strict internal/front/listen", "questions in HTTP, put to the desk; problems as every front end writes them"},
	{"internal/front/checkapi", "root httplimit internal/lang/jsonvalue", "answers to proxies are rendered as the middleware does; numbers as text"},
	{"internal/front/admin", "root rules rules/source", "it shows rules and counters"},
	{"internal/front/admin", "internal/telemetry/auditlog internal/telemetry/fit internal/telemetry/offenders", "every write has an entry; whether numbers fit; who is limited most"},
	{"internal/front/admin", "internal/front/slip", "it opens what refused clients quote"},
	{"internal/front/slip", "root", "what a decision was about"},
	{"internal/front/admin", "internal/chain/board", "bans and overrides are ordered on it"},
	{"internal/front/admin", "internal/lang/describe internal/lang/diag internal/lang/route", "questions are requests described by hand"},

	{"fleet", "root internal/chain internal/chain/board internal/chain/eventual internal/chain/lease internal/chain/node internal/chain/queue internal/chain/region internal/chain/registry internal/chain/split store/redis", "the whole chain before Redis, for programs and for serve"},
	{"fleet", "internal/lang/redisurl", "names and URLs of regions"},
	{"fleet", "store/memory", "counters of programs that share limits without Redis"},
	{"internal/chain", "root", "layers are stores"},
	{"internal/chain/registry", "internal/chain", "heartbeats as the backend takes them"},
	{"internal/chain/board", "root internal/chain internal/lang/durable", "rows as the backend shares them; the board behind a store; its file"},
	{"internal/chain/lease", "root internal/chain internal/algo", "a layer, which decides from what it took ahead; the ends of windows"},
	{"internal/chain/queue", "root internal/chain internal/algo", "a layer, and turns of buckets"},
	{"internal/chain/queue/queuetest", "root internal/chain/queue", "the queue for the suite of every store"},
	{"internal/chain/share", "root", "limits of other sizes"},
	{"internal/chain/node", "root internal/chain internal/chain/share internal/algo store/memory", "a layer, and the counters that it falls back to"},
	{"internal/chain/eventual", "root internal/chain internal/chain/share internal/algo store/memory", "a layer, the counters of this instance with what it knows of the others', and the spans of windows"},
	{"internal/chain/eventual/hub", "root internal/chain", "tallies in memory, as the store adds them up"},
	{"internal/chain/split", "root internal/chain internal/chain/share internal/algo store/memory", "a layer, the counters of shares, and the spans of windows"},
	{"internal/chain/region", "root internal/chain", "what stores of several regions tell each other"},
	{"internal/chain/sim", "root internal/chain internal/chain/eventual internal/chain/eventual/hub internal/chain/lease internal/chain/node internal/chain/queue internal/chain/region internal/chain/registry internal/chain/split store/memory", "the instances of a fleet, before a Redis that is simulated"},

	{"rules", "root internal/lang/rulefile internal/lang/route internal/lang/jwt internal/lang/apikey internal/lang/diag", "a rule file compiled into checks"},
	{"rules", "rules/envoy", "domains of Envoy's rate limit service, whose files may be among rule files"},
	{"rules/envoy", "root internal/lang/domainfile internal/lang/diag", "configurations of envoyproxy/ratelimit compiled into limits"},
	{"rules/source", "rules internal/lang/rulefile internal/lang/bounded internal/lang/durable", "follows rule files, and keeps the last good ones of other places"},
	{"rules/source/xds", "rules/envoy internal/lang/yamltree internal/lang/diag internal/lang/bounded internal/lang/sleep", "rules of a control plane, as the text of a file, so that mistakes have a place; waits"},
	{"rules/source/redis", "rules/source internal/chain internal/lang/rulepack store/redis", "revisions of rules in Redis, on a shelf of the store"},
	{"rules/source/etcd", "rules/source internal/lang/rulepack internal/lang/bounded", "files and revisions of rules in etcd; files of passwords"},
	{"internal/serve", "rules/source/feed", "and those that follow its rules"},
	{"internal/serve/origins", "rules/source/feed rules/source/httpsource rules/source/dogma", "web servers and Central Dogma"},
	{"rules/source/feed", "rules/source", "bundles of rules over HTTP, for those who follow them"},
	{"rules/source/httpsource", "rules/source rules/source/feed rules/source/internal/web internal/lang/rulefile internal/lang/sleep", "bundles of a web server, or a rule file there and the files that it needs; waits"},
	{"rules/source/dogma", "rules/source rules/source/feed rules/source/internal/web internal/lang/rulefile internal/lang/sleep", "files of Central Dogma; the bounds of a bundle; waits"},
	{"rules/source/internal/web", "internal/lang/bounded internal/lang/sleep", "answers up to a size; files of tokens and certificates; waits for a busy server"},
	{"internal/lang/rulediff", "root internal/lang/rulefile internal/lang/diag", "compares rule files as they were written"},
	{"rules/lint", "root rules internal/lang/rulefile internal/lang/diag", "reads rule files as they were written"},
	{"rules/lint", "rules/envoy internal/lang/domainfile", "and configurations of envoyproxy/ratelimit"},
	{"rules/ruletest", "root rules httplimit store/memory", "runs requests against rules in virtual time"},
	{"rules/ruletest", "internal/lang/describe internal/lang/yamltree internal/lang/diag internal/lang/bounded", "as they are described in a file"},

	{"internal/config", "internal/lang/yamltree internal/lang/diag internal/lang/bounded", "tidegate.yaml as it was written"},
	{"internal/config", "internal/lang/redisurl internal/lang/jwt internal/lang/apikey", "checks the URLs of Redis and of key sets, and where API keys are"},
	{"internal/telemetry", "root internal/telemetry/draw internal/telemetry/offenders internal/telemetry/outcome", "watches decisions"},
	{"internal/telemetry", "internal/telemetry/series", "hands it the totals"},
	{"internal/telemetry/accesslog", "root internal/telemetry/outcome", "a line for each decision"},
	{"internal/telemetry/auditlog", "internal/lang/durable", "a file that is new lasts"},
	{"internal/telemetry/fit", "root", "watches refusals"},
	{"internal/telemetry/offenders", "root internal/telemetry/draw", "watches decisions"},
	{"internal/telemetry/outcome", "root", "words for decisions"},
	{"internal/telemetry/traces", "internal/telemetry/accesslog", "what is told of a request, in spans"},

	{"store/memory", "root internal/algo", "the arithmetic, on counters in this process"},
	{"store/redis", "root internal/algo internal/chain internal/lang/bounded internal/lang/redisurl store/redis/internal/rediswire", "the arithmetic in Lua; batches; URLs; files of passwords and certificates"},
	{"store/storetest", "root", "the suite of every store"},
	{"httplimit", "root internal/lang/jsonvalue internal/lang/formvalue internal/lang/sleep", "renders decisions; finds values in requests; waits until it is their turn"},
	{"client", "root httplimit internal/lang/usage internal/lang/sleep", "decisions about calls of others' APIs; rules read them as they read requests; true costs in responses; waits"},
	{"client", "internal/chain internal/chain/queue", "calls that leave pass their turns on"},
	{"internal/algo", "root", "limits"},

	{"internal/lang/rulefile", "root internal/lang/yamltree internal/lang/diag internal/lang/route internal/lang/bounded", "the rule file as it was written"},
	{"internal/lang/domainfile", "root internal/lang/yamltree internal/lang/diag", "the configuration of envoyproxy/ratelimit as it was written"},
	{"internal/lang/domainfile", "internal/lang/rulefile", "limits in the notation of rule files"},
	{"internal/lang/yamltree", "internal/lang/diag", "mistakes have places"},
	{"internal/lang/jwt", "internal/lang/bounded internal/lang/durable internal/lang/jsonvalue", "key files and copies, claims"},
	{"internal/lang/apikey", "internal/lang/bounded internal/lang/diag internal/lang/durable", "files of keys, and mistakes in them"},
	{"internal/lang/usage", "root internal/lang/jsonvalue", "tells a visit the costs that it finds in JSON"},
	{"internal/lang/describe", "root httplimit internal/lang/diag", "makes what a front end would make"},

	{"internal/dev/openapi", "internal/lang/yamltree", "reads OpenAPI files"},
	{"internal/dev/tallytest", "root internal/chain", "the suite of all that add up tallies"},
	{"internal/dev/gracetest", "root internal/dev/testdep store/memory", "compares stores with one in memory that nothing happens to"},
	{"internal/dev/schematest", "internal/lang/yamltree", "reads files as editors do"},
	{"internal/dev/archivetest", "rules/source", "the suite of every archive of rules"},
	{"internal/dev/accuracy", "root internal/algo internal/dev/marked", "compares the algorithms, and writes a page"},
	{"internal/dev/edits", "root rules", "random edits of rule files, for tests of stores"},
}

func TestEdges(t *testing.T) {
	is := edgesOf(t)
	for _, e := range edges {
		for to := range strings.FieldsSeq(e.to) {
			if !is[e.from][to] {
				t.Errorf("%s no longer imports %s: take that out of the table", e.from, to)
			}
			delete(is[e.from], to)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(is)) {
		for _, to := range slices.Sorted(maps.Keys(is[from])) {
			t.Errorf("%s imports %s, which the table does not have: what is it for?", from, to)
		}
	}
}

// edgesOf are the imports of one package by another, by their folders; the root is "root".
func edgesOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := make(map[string]map[string]bool)
	for name, src := range moduleFiles(t, "../../..") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		from := path.Dir(name)
		for _, i := range file.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			rest, ours := strings.CutPrefix(to, module)
			if !ours {
				continue
			}
			if rest = strings.TrimPrefix(rest, "/"); rest == "" {
				rest = "root"
			}
			if all[from] == nil {
				all[from] = make(map[string]bool)
			}
			all[from][rest] = true
		}
	}
	return all
}

// docs/design.md shows the table.
func TestDesignPageHasTheTable(t *testing.T) {
	const page = "../../../docs/design.md"
	var b strings.Builder
	b.WriteString("| package | imports | for |\n|---|---|---|\n")
	for _, e := range edges {
		to := "`" + strings.Join(strings.Fields(e.to), "`, `") + "`"
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.from, strings.ReplaceAll(to, "`root`", "root"), e.why)
	}
	if *update {
		if err := marked.Update(page, "edges", b.String()); err != nil {
			t.Fatal(err)
		}
	}
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(src), b.String()) {
		t.Errorf("%s does not have the table of imports as it is (-update writes it)", page)
	}
}
