// Package readings is the table of `make conformance` for tests: which route real servers
// take each spelling of a request target for. Start with [Read], and hold what became of
// a target against [Table.Escapes]. The front ends make no use of it.
package readings

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

//go:embed readings.tsv
var tsv string

// Rules are the rules of the routes in the table, and one rule for everything that is not
// exempt.
const Rules = `
version: 1
exempt: [ { match: /exempt/ } ]
rules:
  - { name: denied,  match: /denied/,  deny: true }
  - { name: limited, match: /limited/, per: everyone, limits: 1000000/hour }
  - { name: rest,                      per: everyone, limits: 1000000/hour }
`

// nocase is the server of the table that ignores case.
const nocase = "nocase"

// Table is what the servers answered.
type Table struct {
	servers []string
	routes  map[string][]string // by target: a route, or the status of a refusal, for each server
}

// Read parses the table.
func Read(t testing.TB) Table {
	t.Helper()
	table := Table{routes: make(map[string][]string)}
	for line := range strings.Lines(tsv) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case table.servers == nil:
			table.servers = fields[1:]
		case len(fields) != 1+len(table.servers):
			t.Fatalf("%q has %d fields, and there are %d servers", line, len(fields), len(table.servers))
		default:
			target, err := strconv.Unquote(fields[0])
			if err != nil {
				t.Fatalf("%s: %v", fields[0], err)
			}
			for i, field := range fields[1:] {
				fields[1+i], _, _ = strings.Cut(field, " ") // the path is for people
			}
			table.routes[target] = fields[1:]
		}
	}
	if len(table.routes) < 2000 || len(table.servers) < 8 {
		t.Fatalf("%d targets, %d servers", len(table.routes), len(table.servers))
	}
	return table
}

// Targets returns the targets that start with a prefix, in order.
func (table Table) Targets(prefix string) (all []string) {
	for target := range table.routes {
		if strings.HasPrefix(target, prefix) {
			all = append(all, target)
		}
	}
	slices.Sort(all)
	return all
}

// Escapes returns a sentence for every server to which a target was passed on past the
// [Rules]. held are the names of the rules that it was held to; ignoreCase says that
// the rules ignore case. known is false for a target that no server was asked for.
func (table Table) Escapes(target string, held []string, ignoreCase bool) (escapes []string, known bool) {
	routes, known := table.routes[target]
	for i, route := range routes {
		server := table.servers[i]
		if server == nocase && !ignoreCase {
			continue
		}
		wrong := Escaped(route, held)
		if route == "other" && ignoreCase != (server == nocase) {
			wrong = "" // to a server that minds case, /EXEMPT is another path; the rules were told otherwise
		}
		if wrong != "" {
			escapes = append(escapes, fmt.Sprintf("%q is %s to %s: %s (held to %v)", target, route, server, wrong, held))
		}
	}
	return escapes, known
}

// Escaped returns how a request that a server takes for a route escaped the [Rules], if it
// was held to those that are named and passed on; "" means that it did not.
func Escaped(route string, held []string) string {
	switch {
	case route == "denied":
		return "it is denied"
	case route == "limited" && !slices.Contains(held, "limited"):
		return "it was not counted"
	case route == "other" && !slices.Contains(held, "rest"):
		return "it was exempt"
	}
	return ""
}
