//go:build unix

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/rules/source"
)

const slipRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: few, match: /api/things, per: customer, limits: 1/hour }
  - { name: closed, match: /closed, deny: true }
`

const slipDomain = `domain: edge
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: nobody, rate_limit: { unit: hour, requests_per_unit: 0 } }
`

// opens opens a slip at an admin listener. It returns the status, and the text if it was not opened.
func (w *sandbox) opens(at, text string) (why admin.Why, status int, said string) {
	w.Helper()
	body, err := json.Marshal(map[string]string{"slip": text})
	if err != nil {
		w.Fatal(err)
	}
	res, err := once.Post(at+"/why", "application/json", strings.NewReader(string(body)))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(answer, &why)
	}
	if err != nil {
		w.Fatalf("%v: %s", err, answer)
	}
	return why, res.StatusCode, string(answer)
}

// slippy is a process with every door.
type slippy struct {
	*sandbox
	gateway, check, resp, rls, web, admin string
	pid                                   int
}

func newSlippy(t *testing.T, bin string) *slippy {
	w := newSandbox(t, bin)
	w.writeAll(map[string]string{"rules/rules.yaml": slipRules, "rules/edge.yaml": slipDomain})
	s := w.serve("", nil, append(anyPorts, "--rules=rules", "--listen.check=127.0.0.1:0", "--listen.resp=127.0.0.1:0", "--listen.rls=127.0.0.1:0", "--listen.rls_http=127.0.0.1:0", "--trust.proxies=127.0.0.1", "--log.keys=plain")...)
	line := s.await(1, "serving")
	at := func(name string) string {
		_, rest, _ := strings.Cut(line[name].(string), "://")
		return rest
	}
	return &slippy{w, line["gateway"].(string), line["check"].(string), at("resp"), at("rls"), line["rls_http"].(string), line["admin"].(string), s.cmd.Process.Pid}
}

// askGateway, and the others, ask a door once, and return the slip of the answer.
func (w *slippy) askGateway(path string) string {
	w.Helper()
	res, err := once.Get(w.gateway + path)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var problem struct{ Slip string }
	if text, err := io.ReadAll(res.Body); res.StatusCode >= 400 && (err != nil || json.Unmarshal(text, &problem) != nil || problem.Slip != res.Header.Get(httplimit.SlipHeader)) {
		w.Errorf("the body has another slip than the header: %s", text)
	}
	return res.Header.Get(httplimit.SlipHeader)
}

func (w *slippy) askForwardAuth(path string) string {
	w.Helper()
	r, err := http.NewRequest(http.MethodGet, w.check+"/v1/forward-auth", nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("X-Original-URI", path)
	r.Header.Set("X-Original-Method", "GET")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	res, err := once.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	res.Body.Close()
	return res.Header.Get(httplimit.SlipHeader)
}

func (w *slippy) askCheck(verb, question string) func(path string) string {
	return func(path string) string {
		w.Helper()
		_, said := w.asks(once, w.check, verb, fmt.Sprintf(question, path))
		if many, ok := said["answers"].([]any); ok {
			said = many[0].(map[string]any)
		}
		text, _ := said["slip"].(string)
		return text
	}
}

func (w *slippy) askRESP(command string) func(path string) string {
	return func(path string) string {
		w.Helper()
		reply := w.command("tcp", w.resp, nil, command+" PATH "+path)
		_, text, _ := strings.Cut(reply, " slip ")
		return text
	}
}

// slipIn is the slip among the headers that an answer has Envoy add.
func slipIn(out *pb.RateLimitResponse) string {
	for _, h := range out.GetResponseHeadersToAdd() {
		if h.GetKey() == httplimit.SlipHeader {
			return h.GetValue()
		}
	}
	return ""
}

func (w *slippy) askRLS(t *testing.T, domain, key string) func(value string) string {
	client, _ := envoyClient(t, w.rls)
	return func(value string) string {
		t.Helper()
		out, err := client.ShouldRateLimit(context.Background(), askedOf(domain, key+"="+value))
		if err != nil {
			t.Fatal(err)
		}
		return slipIn(out)
	}
}

func (w *slippy) askJSON(value string) string {
	w.Helper()
	res, err := once.Post(w.web+"/json", "application/json", strings.NewReader(`{"domain":"edge","descriptors":[{"entries":[{"key":"tenant","value":"`+value+`"}]}]}`))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	var said struct{ ResponseHeadersToAdd []struct{ Key, Value string } }
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		w.Fatal(err)
	}
	for _, h := range said.ResponseHeadersToAdd {
		if h.Key == httplimit.SlipHeader {
			return h.Value
		}
	}
	return ""
}

// Every door that answers a refusal gives it a slip, and the slip tells who was refused by what, when,
// where and under which rules. What is admitted has none.
func testSlipsOfDoors(t *testing.T, bin string) {
	w := newSlippy(t, bin)
	hash := w.rulesStatus(w.admin).Instances[0].Hash
	const one = `{"path":"%s"}`
	type door struct {
		ask    func(string) string
		native bool // it is asked about a path, else about a tenant
	}
	for name, d := range map[string]door{
		"gateway":        {ask: w.askGateway, native: true},
		"forward-auth":   {ask: w.askForwardAuth, native: true},
		"check":          {ask: w.askCheck("check", one), native: true},
		"several checks": {ask: w.askCheck("check", `{"checks":[{"path":"%s"}]}`), native: true},
		"reserve":        {ask: w.askCheck("reserve", one), native: true},
		"acquire":        {ask: w.askCheck("acquire", one), native: true},
		"TG.CHECK":       {ask: w.askRESP("TG.CHECK"), native: true},
		"TG.MCHECK":      {ask: w.askRESP("TG.MCHECK"), native: true},
		"TG.RESERVE":     {ask: w.askRESP("TG.RESERVE"), native: true},
		"TG.ACQUIRE":     {ask: w.askRESP("TG.ACQUIRE"), native: true},
		"Envoy, native":  {ask: w.askRLS(t, "any", "path"), native: true},
		"Envoy, domain":  {ask: w.askRLS(t, "edge", "tenant")},
		"Envoy, JSON":    {ask: w.askJSON},
	} {
		t.Run(name, func(t *testing.T) {
			who := strings.NewReplacer(" ", "-", ",", "", ".", "-").Replace(strings.ToLower(name))
			asked, rule, part := who, "edge.tenant", "tenant"
			if d.native {
				asked, rule, part = "/api/things?customer="+who, "few", "customer"
			}
			if text := d.ask(asked); text != "" {
				t.Errorf("what is admitted has a slip: %s", text)
			}
			before := time.Now().Add(-time.Second) // a slip has milliseconds
			text := d.ask(asked)
			if !strings.HasPrefix(text, slip.Prefix) {
				t.Fatalf("the slip is %q", text)
			}
			why, status, said := w.opens(w.admin, text)
			r := why.Refusal
			if status != http.StatusOK || r.Rule != rule || !strings.HasPrefix(r.Limit, "1/1h0m0s ") || r.Remaining != 0 || r.Capacity != 1 || r.RetryAfter <= 0 || r.RetryAfter > 3600 {
				t.Errorf("%d %s", status, said)
			}
			if len(r.Subject) != 1 || r.Subject[0].Name != part || r.Subject[0].Value != who || r.Subject[0].Hashed {
				t.Errorf("%+v", r.Subject)
			}
			if r.At.Before(before) || r.At.After(time.Now()) || !strings.HasSuffix(r.Node, fmt.Sprint(":", w.pid)) || r.Rules == "" || !strings.HasPrefix(hash, r.Rules) {
				t.Errorf("at %v on %q under %q", r.At, r.Node, r.Rules)
			}
			if why.Set == nil || !why.Set.InForce || why.Rule == nil || !strings.Contains(why.Rule.Text, "limit") || why.Gone != "" {
				t.Errorf("%s", said)
			}
			var is admin.OneRule // which has a page
			if _, body := w.get(once, w.admin+"/rules/rule?rule="+rule); json.Unmarshal([]byte(body), &is) != nil || is.Place != why.Rule.Place || is.Text != why.Rule.Text || is.Mode != "enforce" || len(is.Limits) != 1 || is.Limits[0] != (admin.RuleLimit{Role: "decides", Limit: r.Limit}) {
				t.Errorf("the rule %s: %s", rule, body)
			}
			want := fmt.Sprintf("%s=%s was refused by the rule %s", part, who, rule)
			if out, code := w.tidegate("why", text, "--server", w.admin); code != 0 || !strings.HasPrefix(out, want) {
				t.Errorf("tidegate why: %d %s, want %s", code, out, want)
			}
			if !d.native {
				return
			}
			why, _, said = w.opens(w.admin, d.ask("/closed"))
			if r := why.Refusal; r.Rule != "closed" || !r.Denied || !r.Never {
				t.Errorf("a route that is closed: %s", said)
			}
		})
	}
	// A call is refused by one of its descriptors, and the slip is that one's.
	client, _ := envoyClient(t, w.rls)
	out, err := client.ShouldRateLimit(context.Background(), askedOf("edge", "tenant=free", "nobody=x", "unknown=x"))
	if err != nil {
		t.Fatal(err)
	}
	if why, _, said := w.opens(w.admin, slipIn(out)); why.Refusal.Rule != "edge.nobody" || !why.Refusal.Never {
		t.Errorf("%v: %s", out, said)
	}
	// What never comes to the rules has none, nor have the five numbers of CL.THROTTLE.
	if text := w.askGateway("/a/../few"); text != "" {
		t.Errorf("a path with two readings has the slip %s", text)
	}
	w.command("tcp", w.resp, nil, "CL.THROTTLE key 0 1 3600")
	if got := w.command("tcp", w.resp, nil, "CL.THROTTLE key 0 1 3600"); !strings.HasPrefix(got, ":1 :1 :0 :") || strings.Count(got, " ") != 4 {
		t.Errorf("CL.THROTTLE answers %q", got)
	}
}

// A slip of one instance is opened by another with the same file of keys, and by nobody else. A new key
// does not close slips of the one before. Rules that are gone are said to be.
func testSlipsOfFleet(t *testing.T, bin string) {
	const key, next = "a key of sixteen bytes or more", "the key of the next year, as long"
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", slipRules, "slips.key", key+"\n", "other.key", "another key, not of the fleet\n")
	serve := func(name string, flags ...string) (gateway, at string) {
		return w.serveRedis("redis://"+server.Addr, append(flags, "--rules=rules.yaml", "--store.instance="+name, "--log.keys=plain", patientStore)...).ready()
	}
	gateA, adminA := serve("a", "--slips.key_file=slips.key")
	gateB, adminB := serve("b", "--slips.key_file=slips.key")
	_, stranger := serve("c", "--slips.key_file=other.key")
	_, alone := serve("d")
	refused := func(gateway, customer string) (text string) {
		t.Helper()
		w.until(customer+" is refused", func() bool {
			res, err := once.Get(gateway + "/api/things?customer=" + customer)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			text = res.Header.Get(httplimit.SlipHeader)
			return text != ""
		})
		return text
	}
	for node, gateway := range map[string]string{"a": gateA, "b": gateB} {
		text := refused(gateway, "of-"+node)
		for _, at := range []string{adminA, adminB} {
			why, status, said := w.opens(at, text)
			if r := why.Refusal; status != http.StatusOK || r.Node != node || r.Rule != "few" || len(r.Subject) != 1 || r.Subject[0].Value != "of-"+node || why.Set == nil || !why.Set.InForce {
				t.Errorf("a slip of %s: %d %s", node, status, said)
			}
			if len(why.Now) != 1 || why.Now[0].Remaining != 0 {
				t.Errorf("where they stand now: %+v", why.Now)
			}
		}
	}
	text := refused(gateA, "acme")
	forged := []byte(text)
	forged[len(forged)/2] ^= 1
	for name, bad := range map[string]string{"forged": string(forged), "truncated": text[:len(text)-4], "short": text[:20], "of another fleet": slip.NewSealer("another key, not of the fleet").Seal(&slip.Slip{Rule: "few", At: time.Now()})} {
		if _, status, said := w.opens(adminB, bad); status != http.StatusUnprocessableEntity || !strings.Contains(said, "cannot be opened") || !strings.Contains(said, "slips.key_file") {
			t.Errorf("%s: %d %s", name, status, said)
		}
		if out, code := w.tidegate("why", bad, "--server", adminB); code == 0 || !strings.Contains(out, "cannot be opened") {
			t.Errorf("tidegate why, %s: %d %s", name, code, out)
		}
	}
	for name, at := range map[string]string{"with another key": stranger, "without a file": alone} {
		if _, status, said := w.opens(at, text); status != http.StatusUnprocessableEntity || !strings.Contains(said, "slips.key_file") {
			t.Errorf("an instance %s: %d %s", name, status, said)
		}
	}

	// A new key on top: old slips are still opened, and new ones are sealed with it.
	w.write("slips.key", next+"\n"+key+"\n")
	sealed := ""
	w.until("the new key seals", func() bool {
		sealed = refused(gateA, "acme")
		_, err := slip.NewSealer(next).Open(sealed)
		return err == nil
	})
	for _, s := range []string{text, sealed} {
		w.until("both keys open", func() bool { _, status, _ := w.opens(adminB, s); return status == http.StatusOK })
	}
	// A file that is spoilt changes nothing.
	w.write("slips.key", "short\n")
	if _, status, said := w.opens(adminA, sealed); status != http.StatusOK {
		t.Errorf("with a spoilt file: %d %s", status, said)
	}

	// The rules that refused leave the history.
	for i := range source.Kept + 1 {
		was := w.rulesStatus(adminA).Instances[0].Hash
		w.write("rules.yaml", strings.Replace(slipRules, "1/hour", fmt.Sprint(i+2, "/hour"), 1))
		w.until("other rules are in force", func() bool { return w.rulesStatus(adminA).Instances[0].Hash != was })
		w.until("they are in the history", func() bool {
			sets := w.rulesHistory(adminA)
			return len(sets) > 0 && sets[0].InForce && sets[0].Hash != was
		})
	}
	w.until("the rules are gone", func() bool {
		why, status, _ := w.opens(adminB, text)
		return status == http.StatusOK && strings.Contains(why.Gone, "not in the history any more") && why.Rule == nil && why.Set == nil && why.Refusal.Rule == "few" && strings.Contains(why.Text, "customer=acme was refused by the rule few")
	})
	if out, code := w.tidegate("why", text, "--server", adminB); code != 0 || !strings.Contains(out, "customer=acme was refused") || !strings.Contains(out, "not in the history any more") {
		t.Errorf("tidegate why: %d %s", code, out)
	}
}

// A file of keys that is of no use keeps the server from starting, and says what to do.
func testSlipKeyMistakes(t *testing.T, bin string) {
	for name, c := range map[string]struct{ text, want string }{
		"short":   {"long enough to be a key\nshort\n", "slips.key:2:1: error: the key has 5 bytes"},
		"empty":   {"\n\n", "there is no key in the file"},
		"missing": {"", "leads to what does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSandbox(t, bin, "rules.yaml", slipRules)
			if c.text != "" {
				w.write("slips.key", c.text)
			}
			s := w.serve("", nil, append(anyPorts, "--slips.key_file="+filepath.Join(w.dir, "slips.key"))...)
			if code := s.end(); code == 0 || !strings.Contains(s.logText(), c.want) || strings.Contains(s.logText(), "long enough") {
				t.Errorf("it exits with %d: %s", code, s.logText())
			}
		})
	}
}
