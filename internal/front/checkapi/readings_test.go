package checkapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/readings"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// No spelling of a path gets past the rules of a route, whichever server the proxy passes
// it on to: the table is what real servers make of them.
func TestEveryReadingOfRealServers(t *testing.T) {
	testdep.SkipUnderRace(t)
	table := readings.Read(t)
	targets := table.Targets("")
	f := func(name string, slash, ignoreCase bool) {
		t.Run(name, func(t *testing.T) {
			set, err := rules.Parse("rules.yaml", []byte(readings.Rules), rules.Config{IgnoreCase: ignoreCase})
			if err != nil {
				t.Fatal(err)
			}
			var held []string
			gate := tidegate.NewGate(set, memory.New()).Observe(func(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
				for _, c := range checks {
					held = append(held, c.Limit.Name)
				}
			})
			s := newServer(t, "", func(o *Options) { o.Desk, o.EncodedSlash = desk.New(gate), slash })
			passed := 0
			for _, target := range targets {
				for _, allowed := range []func() bool{
					func() bool { return allowedByHeader(t, s, target) },
					func() bool { return allowedBySuffix(t, s, target) },
					func() bool { return allowedByJSON(t, s, target) },
				} {
					held = nil
					if !allowed() {
						continue
					}
					passed++
					escapes, _ := table.Escapes(target, held, ignoreCase)
					for _, e := range escapes {
						t.Error("allowed:", e)
					}
				}
			}
			if total := 3 * len(targets); passed < 500 || passed > total*2/3 {
				t.Errorf("%d of %d passed", passed, total)
			}
		})
	}
	f("as it is", false, false)
	f("encoded slashes", true, false)
	f("any case", false, true)
	f("encoded slashes in any case", true, true)
}

func allowedByHeader(t *testing.T, s *Server, target string) bool {
	r := httptest.NewRequest("GET", forwardAuth, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header["X-Original-Uri"], r.Header["X-Original-Method"] = []string{target}, []string{"GET"}
	return serve(t, s, r).Code == 204
}

func allowedBySuffix(t *testing.T, s *Server, target string) bool {
	if !strings.HasPrefix(target, "/") {
		return false // a proxy would send another path of ours
	}
	r := httptest.NewRequest("GET", forwardAuth, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.RequestURI = forwardAuth + target
	return serve(t, s, r).Code == 204
}

func allowedByJSON(t *testing.T, s *Server, target string) bool {
	body, err := json.Marshal(map[string]string{"path": target})
	if err != nil {
		t.Fatal(err)
	}
	return post(t, s, "check", string(body)).Decision == "allowed"
}
