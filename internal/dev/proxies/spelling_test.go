package proxies

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// spellingRules are those of the routes in the table, and one for everything that is not
// exempt.
const spellingRules = `
version: 1
exempt: [ { match: /exempt/ } ]
rules:
  - { name: denied,  match: /denied/,  deny: true }
  - { name: limited, match: /limited/, per: everyone, limits: 1000000/hour }
  - { name: rest,                      per: everyone, limits: 1000000/hour }
`

// No spelling of a path reaches a route past its rules, whatever the proxy makes of it and
// whichever server is behind it.
func TestEverySpelling(t *testing.T) {
	table := readReadings(t)
	each(t, func(t *testing.T, p proxy) {
		table.lenient = p.rewrites
		t.Run("HTTP1", func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, spellingRules)
			c := newClient(t, p.run(t, d.addr, o.addr))
			found := table.escapes(t, o, d, table.targets(""), c.ask)
			for _, e := range found {
				t.Error(e)
			}
		})
		t.Run("HTTP2", func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, spellingRules)
			addr := "127.0.0.1:" + testdep.FreePort(t)
			p.start(t, addr, d.addr, o.addr, append(p.http2(addr, newPEM(t)), p.patient...)...)
			c := newClient2(t, addr)
			if got := c.get("/limited/x"); got.status != 200 {
				t.Fatalf("%+v", got)
			}
			d.decisions()
			o.reached()
			for _, e := range table.escapes(t, o, d, table.targets(""), c.get) {
				t.Error(e)
			}
		})
	})
}

// The test above finds a proxy that asks about another path than it passes on.
func TestWrongFilesAreFound(t *testing.T) {
	table := readReadings(t)
	for name, edit := range map[string][]string{
		"decoded":   {"auth_request /_tidegate;", "set $asked $uri; auth_request /_tidegate;", "$request_uri;      #", "$asked; #"},
		"constant":  {"$request_uri;      #", "/exempt/x; #"},
		"rewritten": {"proxy_pass http://127.0.0.1", "rewrite ^/exempt/(.*)$ /$1 break; proxy_pass http://127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, spellingRules)
			c := newClient(t, all[0].run(t, d.addr, o.addr, edit...))
			if found := table.escapes(t, o, d, table.targets("/"), c.ask); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// escapes sends all targets, and tells of each that escaped its rules.
func (table readings) escapes(t *testing.T, o *origin, d *door, targets []string, get func(target string) answer) (found []string) {
	t.Helper()
	tell := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	passed, unread := 0, 0
	for _, target := range targets {
		got := get(target)
		asked, arrived := d.decisions(), o.reached()
		if len(arrived) == 0 {
			if 200 <= got.status && got.status < 300 {
				tell("%q: %d although it did not reach the origin", target, got.status)
			}
			continue
		}
		passed++
		if len(arrived) != 1 || len(asked) != 1 {
			tell("%q was sent %d times and asked about %d times: %v", target, len(arrived), len(asked), asked)
			continue
		}
		sent := arrived[0].target
		routes, known := table.routes[sent]
		if !known && table.lenient {
			unread++
			continue
		}
		if !known {
			tell("%q was sent as %q, which no server was asked for: run make conformance", target, sent)
			continue
		}
		for i, route := range routes {
			if wrong := escaped(route, asked[0]); wrong != "" && table.servers[i] != "nocase" {
				tell("%q was sent as %q, which is %s to %s: %s (held to %v)", target, sent, route, table.servers[i], wrong, asked[0])
			}
		}
	}
	if passed < 200 || passed > len(targets)*2/3 {
		tell("%d of %d targets reached the origin", passed, len(targets))
	}
	t.Logf("%d of %d targets reached the origin, %d of them rewritten into what the table does not have", passed, len(targets), unread)
	return found
}

// escaped says how a request that a server takes for a route escaped its rules.
func escaped(route string, held []string) string {
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

// readings is the table of make conformance: by target, the route that each server takes it
// for, or the status that it refuses it with.
type readings struct {
	servers []string
	routes  map[string][]string
	lenient bool // targets that are not in the table are not judged
}

// targets are those of the table that begin so.
func (table readings) targets(start string) (all []string) {
	for target := range table.routes {
		if strings.HasPrefix(target, start) {
			all = append(all, target)
		}
	}
	slices.Sort(all)
	return all
}

func readReadings(t *testing.T) readings {
	t.Helper()
	raw, err := os.ReadFile("../../front/gateway/testdata/readings.tsv")
	if err != nil {
		t.Fatal(err)
	}
	table := readings{routes: map[string][]string{}}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case table.servers == nil:
			table.servers = fields[1:]
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
