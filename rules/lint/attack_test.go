package lint_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

// attacker is the other side of escapable-route: it sends requests to the real
// rules, leaves out and makes up what it can, and looks whether any counter ever
// sees it twice.
type attacker struct {
	t    *testing.T
	file *rulefile.File
	set  *rules.Set
	// What it may show, by the name under which rules ask for it; those it cannot
	// make up always have the same value.
	invents map[string]bool
	knows   map[string]string // the same by what conditions ask for
	n       int               // requests sent
}

const tokenKey = "a secret that is long enough for HS256, and then some more of it"

func newAttacker(t *testing.T, src string) *attacker {
	t.Helper()
	f, problems := rulefile.Parse("rules.yaml", []byte(src), rulefile.Options{Now: now})
	if problems.HasErrors() {
		t.Fatalf("%v\nin\n%s", problems, src)
	}
	set, err := rules.Parse("rules.yaml", []byte(src), rules.Config{
		Now:      now,
		Trust:    rules.Trust{JWT: &rules.JWT{Key: "key"}},
		ReadFile: func(string) ([]byte, error) { return []byte(tokenKey), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &attacker{t: t, file: f, set: set, invents: make(map[string]bool), knows: make(map[string]string)}
	for _, id := range f.Identify {
		for _, s := range id.Sources {
			a.knows[s.Text] = a.asked(id.Name.Text)
			switch s.Kind {
			case rulefile.SourceJWT:
				a.invents["token"] = false
			case rulefile.SourceJWTUnverified:
				a.invents["token"] = true
			case rulefile.SourceHeader, rulefile.SourceTLSClientCN:
				a.invents[s.Text] = false
			case rulefile.SourceClientHeader, rulefile.SourceCookie, rulefile.SourceQuery, rulefile.SourceBody,
				rulefile.SourceBasicUser, rulefile.SourceMetadata:
				a.invents[s.Text] = true
			}
		}
	}
	return a
}

// asked is a value of name that passes some condition.
func (a *attacker) asked(name string) string {
	for _, r := range a.file.Rules {
		guards := [][]rulefile.Condition{r.When, r.Unless}
		for _, b := range r.For {
			guards = append(guards, b.When, b.Unless)
		}
		for _, c := range slices.Concat(guards...) {
			if c.Name.Text == name && (c.Any[0].Kind == rulefile.TestLiteral || c.Any[0].Kind == rulefile.TestGlob) {
				return strings.ReplaceAll(c.Any[0].Text, "*", "")
			}
		}
	}
	return "constant"
}

// escapes reports whether some pattern can be asked for without being counted
// twice, although somebody is counted there.
func (a *attacker) escapes() bool {
	var names []string
	for name := range a.invents {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, r := range a.file.Rules {
		if r.Mode != rulefile.Enforce || r.Deny {
			continue
		}
		match := r.Match
		if len(match) == 0 {
			match = []rulefile.Pattern{{Path: "/"}}
		}
		for _, m := range match {
			methods := []string{m.Method}
			if m.Method == "" {
				methods = []string{"", "GET", "POST", "PUT", "PATCH", "DELETE"}
			}
			for _, method := range methods {
				if a.walks(m, method, names) && a.binds(m, method, names) {
					return true
				}
			}
		}
	}
	return false
}

// showing is what a request shows, by name, and whether it is what conditions ask
// for; what is not there is left out.
type showing map[string]bool

// walks tries everything that the attacker can show.
func (a *attacker) walks(m rulefile.Pattern, method string, names []string) bool {
	for mask := range 1 << len(names) {
		shown := showing{}
		proves := false
		for i, name := range names {
			if mask>>i&1 == 1 {
				shown[name] = false
				proves = proves || !a.invents[name]
			}
		}
		seen := make(map[string]bool)
		free, counted := true, false
		for range 3 {
			checks, refused := a.send(m, method, shown)
			free = free && !refused
			counted = counted || len(checks) > 0
			for _, c := range checks {
				free = free && !seen[c]
				seen[c] = true
			}
		}
		if free && (counted || !proves) {
			return true
		}
	}
	return false
}

// binds reports whether anybody is counted at all, be it one who knows what some
// conditions ask for.
func (a *attacker) binds(m rulefile.Pattern, method string, names []string) bool {
	return a.bindsOne(m, method, names, showing{})
}

func (a *attacker) bindsOne(m rulefile.Pattern, method string, names []string, shown showing) bool {
	if len(names) == 0 {
		checks, _ := a.send(m, method, shown)
		return len(checks) > 0
	}
	first, rest := names[0], names[1:]
	if a.bindsOne(m, method, rest, shown) {
		return true
	}
	defer delete(shown, first)
	for _, shown[first] = range []bool{false, true} {
		if a.bindsOne(m, method, rest, shown) {
			return true
		}
	}
	return false
}

var wildcard = regexp.MustCompile(`\{\w+(\.\.\.)?\}`)

type values map[string]string

func (v values) Value(name string) (string, bool) {
	text, ok := v[name]
	return text, ok
}

// send returns the counters that a request is counted in, and whether it was
// refused without counting. Wildcards, what is below a pattern, and a host and
// method that it leaves open, are new with every request.
func (a *attacker) send(m rulefile.Pattern, method string, shown showing) (counters []string, refused bool) {
	a.n++
	unique := "x" + strconv.Itoa(a.n)
	r := &tidegate.Request{Method: method, Host: m.Host, Path: m.Path}
	if r.Method == "" {
		r.Method = strings.ToUpper(unique)
	}
	if r.Host == "" {
		r.Host = unique + ".example"
	}
	r.Path = wildcard.ReplaceAllString(r.Path, unique)
	if strings.HasSuffix(r.Path, "/") {
		r.Path += unique + "/" + unique + "/" + unique
	}
	v := values{"ip": "192.0.2.1", "addr": "192.0.2.1", "tenant": "t"}
	for name, knows := range shown {
		text := "constant"
		if a.invents[name] {
			text = unique
		}
		switch {
		case name == "token":
			role := "nobody"
			if knows {
				role = a.knows["jwt.role"]
			}
			v["client header Authorization"] = "Bearer " + token(text, role, a.invents[name])
		case knows:
			v[name] = a.knows[name]
		default:
			v[name] = text
		}
	}
	r.Values = v
	for _, c := range a.set.Match(r, nil) {
		switch {
		case c.Advisory:
		case c.Limit.Algorithm == tidegate.Deny:
			refused = true
		default:
			counters = append(counters, fmt.Sprintf("%s %q", c.Limit.Identity(), c.Key))
		}
	}
	return counters, refused
}

// token is one with a sub and a role, forged or not.
func token(sub, role string, forged bool) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":%q,"role":%q,"exp":4102444800}`, sub, role))
	mac := hmac.New(sha256.New, []byte(tokenKey))
	mac.Write([]byte(text))
	if forged {
		mac.Write([]byte("!"))
	}
	return text + "." + encode(mac.Sum(nil))
}

// What escapable-route says of random rules is what an attacker finds out.
func TestEscapableRouteAgreesWithAttacker(t *testing.T) {
	files := 500
	if testing.Short() {
		files = 100
	}
	files /= lint.Thin
	found := 0
	for seed := range files {
		src := randomRules(rand.New(rand.NewPCG(uint64(seed), 1)))
		f, problems := rulefile.Parse("rules.yaml", []byte(src), rulefile.Options{Now: now})
		if problems.HasErrors() {
			t.Fatalf("%v\nin\n%s", problems, src)
		}
		says := false
		for _, p := range lint.Run(f, lint.Options{Now: now}) {
			says = says || p.Check == "escapable-route"
		}
		if says {
			found++
		}
		if escaped := newAttacker(t, src).escapes(); escaped != says {
			t.Fatalf("seed %d: the check says %t, the attacker %t, of\n%s", seed, says, escaped, src)
		}
	}
	if found < files/10 || found > files*9/10 {
		t.Errorf("%d of %d files can be escaped: the rules are too much alike", found, files)
	}
}

func randomRules(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	condition := func() string {
		return pick("user: present", "user: absent", "role: known", "device: present", "device: absent", "device: known", "method: GET",
			"ip: 10.0.0.0/8", "both: present", "both: absent", "cn: known", "user: present, device: absent", "role: known, device: present")
	}
	guard := func() string {
		return pick("", "", "", "when: { "+condition()+" }, ", "when: { "+condition()+" }, ", "unless: { "+condition()+" }, ",
			"when: { "+condition()+" }, unless: { "+condition()+" }, ")
	}
	var b strings.Builder
	b.WriteString(`version: 1
identify:
  user: jwt.sub
  role: jwt.role
  device: client header X-Device
  both: [jwt.sub, client header X-Key]
  cn: tls.client_cn
  tenant: descriptor
  id: "path {id}"
rules:
`)
	for i := range 1 + r.IntN(4) {
		match := pick("", "/a/", "/a/b", "GET /a/", "POST /a/b", `"/a/{id}"`, `"GET /a/{id}"`, "[/a/b, GET /c]", "example.com/a/")
		fmt.Fprintf(&b, "  - { name: r%d, ", i)
		if match != "" {
			fmt.Fprintf(&b, "match: %s, ", match)
		}
		if r.IntN(7) == 0 {
			fmt.Fprintf(&b, "%sdeny: true }\n", guard())
			continue
		}
		per := []string{"ip", "user", "user", "device", "both", "cn", "tenant", "method", "host"}
		if strings.Contains(match, "{id}") {
			per = append(per, "id", "id")
		}
		if match != "" {
			per = append(per, "route")
		}
		one, other := per[r.IntN(len(per))], per[r.IntN(len(per))]
		switch {
		case r.IntN(8) == 0:
			b.WriteString("per: everyone, ")
		case r.IntN(3) == 0 && one != other:
			fmt.Fprintf(&b, "per: [%s, %s], ", one, other)
		default:
			fmt.Fprintf(&b, "per: %s, ", one)
		}
		b.WriteString(pick("", "", "missing: skip, ", "missing: refuse, ") + guard())
		b.WriteString(pick("limits: 10/minute", "limits: 10/minute", "limits: 10/minute", "concurrency: { slots: 5, lease: 30s }", "limits: unlimited"))
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, ", for: [{ when: { %s }, limits: %s }]", condition(), pick("unlimited", "5/minute"))
		}
		if i > 0 && r.IntN(5) == 0 {
			fmt.Fprintf(&b, ", instead_of: r%d", r.IntN(i))
		}
		b.WriteString(pick("", "", "", ", mode: shadow") + " }\n")
	}
	return b.String()
}
