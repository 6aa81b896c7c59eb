package proxies

import (
	"fmt"
	"testing"

	"tidegate.dev/tidegate/internal/dev/readings"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// No spelling of a path reaches a route past its rules, whatever the proxy makes of it and
// whichever server is behind it.
func TestEverySpelling(t *testing.T) {
	table := readings.Read(t)
	each(t, func(t *testing.T, p proxy) {
		t.Run("HTTP1", func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, readings.Rules)
			c := newClient(t, p.run(t, d.addr, o.addr))
			found := escapes(t, table, p.rewrites, o, d, table.Targets(""), c.ask)
			for _, e := range found {
				t.Error(e)
			}
		})
		t.Run("HTTP2", func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, readings.Rules)
			addr := "127.0.0.1:" + testdep.FreePort(t)
			p.start(t, addr, d.addr, o.addr, append(p.http2(addr, newPEM(t)), p.patient...)...)
			c := newClient2(t, addr)
			if got := c.get("/limited/x"); got.status != 200 {
				t.Fatalf("%+v", got)
			}
			d.decisions()
			o.reached()
			for _, e := range escapes(t, table, p.rewrites, o, d, table.Targets(""), c.get) {
				t.Error(e)
			}
		})
	})
}

// The test above finds a proxy that asks about another path than it passes on.
func TestWrongFilesAreFound(t *testing.T) {
	table := readings.Read(t)
	for name, edit := range map[string][]string{
		"decoded":   {"auth_request /_tidegate;", "set $asked $uri; auth_request /_tidegate;", "$request_uri;      #", "$asked; #"},
		"constant":  {"$request_uri;      #", "/exempt/x; #"},
		"rewritten": {"proxy_pass http://127.0.0.1", "rewrite ^/exempt/(.*)$ /$1 break; proxy_pass http://127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d := newOrigin(t), newDoor(t, readings.Rules)
			c := newClient(t, all[0].run(t, d.addr, o.addr, edit...))
			if found := escapes(t, table, false, o, d, table.Targets("/"), c.ask); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// escapes sends all targets and returns what escaped its rules. A lenient one ignores
// targets that the proxy rewrote into something that is not in the table.
func escapes(t *testing.T, table readings.Table, lenient bool, o *origin, d *door, targets []string, get func(target string) answer) (found []string) {
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
		past, known := table.Escapes(sent, asked[0], false)
		switch {
		case known:
			for _, e := range past {
				tell("%q: %s", target, e)
			}
		case lenient:
			unread++
		default:
			tell("%q was sent as %q, which no server was asked for: run make conformance", target, sent)
		}
	}
	if passed < 200 || passed > len(targets)*2/3 {
		tell("%d of %d targets reached the origin", passed, len(targets))
	}
	t.Logf("%d of %d targets reached the origin, %d of them rewritten into what the table does not have", passed, len(targets), unread)
	return found
}
