package rules

import (
	"reflect"
	"strings"
	"testing"
)

// A state that goes back to the pool refers to nothing of its request, beyond the length of its lists
// neither: a pooled state would keep tokens and paths for as long as it is not used.
func TestPooledStatesKeepNothing(t *testing.T) {
	set := parse(t, `
identify: { a: client header A, b: client header B, c: client header C, id: "path {id}", place: path, key: [cookie k, header K] }
exempt: [{ match: /open/ }]
rules:
  - { name: one, match: "/x/{id}", per: id, limits: 5/minute }
  - { name: three, per: [a, b, c], limits: 5/minute }
  - { name: two, match: "/x/{id}", per: [key, place], limits: 5/minute }
  - { name: last, per: a, limits: 5/minute }
shed: { while: cpu > 80% }
`, Config{Signals: signals{"cpu": 1}})
	for _, path := range []string{"/x/secret", "/x/secret;odd", `/x/y\secret`, "/open/secret", "/secret"} {
		r := request("GET "+path, "client header A", "secret", "client header B", "secret", "client header C", "secret", "cookie k", "secret", "ip", "192.0.2.1")
		for _, use := range []func(*state){
			func(st *state) { st.match(nil) },
			func(st *state) { st.explain("") },
		} {
			st := set.state(r)
			single := len(st.readings) == 1
			use(st)
			for _, list := range []any{st.parts[:cap(st.parts)], st.hits[:cap(st.hits)], st.routes[:cap(st.routes)], st.values} {
				all := reflect.ValueOf(list)
				for i := range all.Len() {
					if !all.Index(i).IsZero() {
						t.Errorf("%s: item %d of %T still is %+v", path, i, list, all.Index(i))
					}
				}
			}
			for i, reading := range st.readings[:cap(st.readings)] {
				if strings.Contains(reading.Path(), "secret") && (i > 0 || !single) { // see done
					t.Errorf("%s: reading %d still is %s", path, i, reading.Path())
				}
			}
			if st.request != nil || st.identified != nil || st.address.IsValid() || st.claimsKnown || st.looseKnown || st.keyKnown {
				t.Errorf("%s: the state still has %+v", path, st)
			}
		}
	}
}
