package rules

import (
	"strings"
	"testing"
)

// Each rule is told once per door, however often it is loaded, and again when it changes.
func TestDoorWarnings(t *testing.T) {
	const src = `
version: 1
rules:
  - { name: a, per: ip, limits: 5/minute, count: { status: 401 } }
  - { name: b, per: ip, concurrency: { slots: 2, lease: 30s } }
  - { name: c, per: ip, limits: 5/minute }
`
	w := &DoorWarnings{Doors: []Door{DoorForwardAuth, DoorRESP}}
	f := func(src string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range w.Of(parse(t, src, Config{})) {
			_, rest, _ := strings.Cut(p.Message, "at the door ")
			door, rest, _ := strings.Cut(rest, " the rule `")
			rule, _, _ := strings.Cut(rest, "`")
			got = append(got, door+" "+rule)
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(src, "forward-auth a", "forward-auth b", "resp a")
	f(src)
	f(strings.Replace(src, "name: c, per: ip", "name: c, per: ip, queue: { places: 5, max_wait: 5s }", 1), "forward-auth c", "resp c")
	f(src)
	if all := parse(t, src, Config{}).Blind(DoorCheck); len(all) != 1 {
		t.Errorf("%v", all)
	}
	blocks := strings.Replace(src, "count: { status: 401 }", "count: { status: 401 }, block: 15m", 1)
	for _, door := range Doors() {
		for _, p := range parse(t, blocks, Config{}).Blind(door)[:1] {
			if !strings.Contains(p.Message, "charges every request, also towards `block`") {
				t.Errorf("%s: %s", door, p.Message)
			}
		}
	}
	if none := new(DoorWarnings).Of(parse(t, src, Config{})); len(none) != 0 {
		t.Errorf("%v", none)
	}
}

func TestSamples(t *testing.T) {
	set := parse(t, `
version: 1
identify: { id: "path {id}" }
rules:
  - { name: a, per: ip, limits: 5/minute }
  - { name: b, match: [POST /b, "h.example/b/{x}/{rest...}", /b], per: ip, limits: 5/minute }
  - { name: c, match: "/c/{id}", per: id, limits: 5/minute }
  - { name: d, match: /d, per: path, limits: 5/minute }
  - { name: e, match: /e, deny: true }
  - { name: f, match: /f, per: ip, limits: 5/minute, mode: disabled }
  - { name: g, match: "/b", per: route, limits: 5/minute }
  - { name: h, match: "/h/{$}", per: ip, limits: 5/minute }
`, Config{})
	var got []string
	for _, s := range set.Samples() {
		got = append(got, strings.TrimSpace(s.Method+" "+s.Host+s.Path))
	}
	if want := "/|POST /b|h.example/b/x/rest|/b|/h/"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
