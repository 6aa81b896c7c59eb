//go:build unix

package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

const offendersRules = `version: 1
identify:
  user: header X-User
  key: client header X-Api-Key
rules:
  - { name: api, match: /api/, per: user, limits: 2/hour }
  - { name: keys, match: /keys/, per: [key, ip], limits: 2/hour }
  - { name: all, match: /all/, per: everyone, limits: 1/hour }
  - { name: tried, match: /tried/, per: user, limits: 1/hour, mode: shadow }
  - { name: asked, per: [user, route], match: /asked/, limits: 1/hour }
`

const offendersDomain = `domain: edge
descriptors:
  - { key: tenant, rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: api_key, rate_limit: { unit: year, requests_per_unit: 1 } }
  - key: generic_key
    value: slow
    rate_limit: { unit: year, requests_per_unit: 1 }
  - { key: tried, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 1 } }
`

// attributes of a request.
type attributes map[string]string

func (a attributes) Value(name string) (string, bool) { v, ok := a[name]; return v, ok }

// openServer prepares a server with counters in memory, without serving.
func openServer(t *testing.T, files map[string]string) *server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	any := config.Address{Network: "tcp", Address: "127.0.0.1:0"}
	s := &server{
		config: &config.Config{
			Rules: []string{dir}, Store: config.Store{Kind: config.InMemory}, Listen: config.Listen{Check: any, RESP: any, RLS: any},
			Log: config.Log{Access: config.Stdout},
		},
		heir: &handover.Heir{}, stdout: io.Discard, stderr: io.Discard,
	}
	t.Cleanup(s.close)
	if err := s.prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.open("")
	return s
}

// Whoever is refused at any door is listed, by names that operators know, and without secrets.
func TestOffendersOfEveryDoor(t *testing.T) {
	s := openServer(t, map[string]string{"rules.yaml": offendersRules, "edge.yaml": offendersDomain})
	ctx := context.Background()
	ask := func(decide func(context.Context, *tidegate.Request) tidegate.Decision, path string, values attributes) {
		for range 3 {
			decide(ctx, &tidegate.Request{Method: "GET", Path: path, Values: values})
		}
	}
	ask(s.gate.Decide, "/api/x", attributes{"header X-User": "ann", "ip": "192.0.2.1"})
	ask(s.gate.Decide, "/keys/x", attributes{"client header X-Api-Key": "sk_live_1", "ip": "192.0.2.1"})
	ask(s.gate.Decide, "/all/x", attributes{"ip": "192.0.2.1"})
	ask(s.gate.Decide, "/tried/x", attributes{"header X-User": "ann"})
	ask(s.gate.Decide, "/asked/x", attributes{"ip": "192.0.2.9"}) // no user: counted by address
	ask(s.checkDoor.callers.desk.Check, "/asked/x", attributes{"header X-User": "bob"})
	throttle(t, s, "visitor:7")
	for range 3 {
		for _, d := range []string{"tenant=acme", "api_key=sk_live_2", "generic_key=slow", "tried=x"} {
			askRLS(t, s, "edge", d)
		}
	}

	f := func(keys string, by offenders.By, want map[string]string) {
		t.Helper()
		s.config.Log.Keys = keys
		got := make(map[string]string)
		for _, l := range s.offenders.Snapshot(offenders.Query{By: by, Minutes: 1}).Lists {
			for _, e := range l.Entries {
				var who []string
				for _, p := range e.Subject {
					who = append(who, strings.TrimSuffix(p.Name+"="+p.Value, "="))
				}
				got[l.Rule] += fmt.Sprintf("[%s %d]", strings.Join(who, " "), e.Count)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%v\nwant\n%v", by, got, want)
		}
	}
	f(config.Hashed, offenders.Refused, map[string]string{
		"api":                   "[user=ann 1]",
		"keys":                  "[key=" + offenders.Hash("sk_live_1") + " ip=192.0.2.1 1]",
		"all":                   "[everyone 2]",
		"asked":                 "[ip=192.0.2.9 route=/asked/ 2][user=bob route=/asked/ 2]",
		"cl.throttle":           "[key=visitor:7 2]",
		"edge.tenant":           "[tenant=acme 2]",
		"edge.api_key":          "[api_key=" + offenders.Hash("sk_live_2") + " 2]",
		"edge.generic_key_slow": "[everyone 2]",
	})
	f(config.Hashed, offenders.WouldRefuse, map[string]string{"tried": "[user=ann 2]", "edge.tried": "[tried=x 2]"})
	f(config.Plain, offenders.Nearest, map[string]string{
		"api": "[user=ann 0]", "keys": "[key=sk_live_1 ip=192.0.2.1 0]", "all": "[everyone 0]",
		"asked":       "[ip=192.0.2.9 route=/asked/ 0][user=bob route=/asked/ 0]",
		"cl.throttle": "[key=visitor:7 0]", "edge.tenant": "[tenant=acme 0]", "edge.api_key": "[api_key=sk_live_2 0]", "edge.generic_key_slow": "[everyone 0]",
	})
	s.config.Log.Keys = config.Off
	for _, l := range s.offenders.Snapshot(offenders.Query{}).Lists {
		// Whatever is listed can be named in an order: it is a rule, or is called what it is.
		ban := rules.Measure{ID: "b", Kind: rules.Ban, As: map[string]string{"ip": "192.0.2.1"}, Rule: l.Rule}
		if err := s.rules.live.Set().CheckMeasure(&ban); err != nil && strings.Contains(err.Error(), "there is no rule") {
			t.Errorf("a ban of what is listed as %s: %v", l.Rule, err)
		}
		for _, e := range l.Entries {
			for _, p := range e.Subject {
				if p.Value != "" && !p.Hashed {
					t.Errorf("log.keys is off, and %s shows %s", l.Rule, p.Value)
				}
			}
		}
	}
	// A key that is too long is a hash, and stays one.
	long := strings.Repeat("x", 200)
	ask(s.gate.Decide, "/api/x", attributes{"header X-User": long, "ip": "192.0.2.1"})
	found := s.offenders.Snapshot(offenders.Query{By: offenders.Refused, Rule: "api", Search: "#"})
	if len(found.Lists) == 0 || !found.Lists[0].Entries[0].Subject[0].Hashed || found.Lists[0].Entries[0].Subject[0].Name != "user" {
		t.Errorf("a long key: %+v", found.Lists)
	}
}

// throttle sends CL.THROTTLE for a key of one event, three times.
func throttle(t *testing.T, s *server, key string) {
	t.Helper()
	door, err := s.openRESP()
	if err != nil {
		t.Fatal(err)
	}
	go door.Serve(s.respDoor.listener)
	t.Cleanup(func() { door.Close() })
	conn, err := net.Dial("tcp", s.respDoor.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for range 3 {
		fmt.Fprintf(conn, "CL.THROTTLE %s 0 1 3600\r\n", key)
		for range 6 {
			if line, err := in.ReadString('\n'); err != nil || line[0] == '-' {
				t.Fatalf("%q, %v", line, err)
			}
		}
	}
}
