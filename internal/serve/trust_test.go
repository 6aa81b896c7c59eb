//go:build unix

package serve

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const trustRules = `version: 1
identify: { customer: api_key, plan: api_key.plan, user: jwt.sub }
rules:
  - { name: known, match: /api/, when: { customer: absent }, deny: true, respond: { status: 401 } }
  - { name: api, match: /api/, per: customer, limits: 1000/hour, for: [{ when: { plan: pro }, limits: 5000/hour }] }
  - { name: users, match: /users/, per: user, missing: refuse, limits: 1000/hour }
`

// apiKeys runs tidegate api-keys in the sandbox and returns what it printed.
func (w *sandbox) apiKeys(args ...string) string {
	w.Helper()
	c := exec.Command(w.bin, append([]string{"api-keys"}, args...)...)
	c.Dir = w.dir
	out, err := c.Output()
	if err != nil {
		w.Fatalf("tidegate api-keys %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// status is that of a request with a header.
func (w *sandbox) status(url, name, value string) int {
	w.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set(name, value)
	r.Header.Set("X-Forwarded-Method", "GET")
	r.Header.Set("X-Forwarded-Uri", "/api/things")
	r.Header.Set("X-Forwarded-Host", "example.com")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	answer, err := once.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// An API key says at every door who is asking, and is unknown at all of them soon after it was
// revoked, even while the rules are broken. Broken keys change nothing, and everybody is told.
func testAPIKeys(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", trustRules, "tidegate.yaml", "rules: rules.yaml\ntrust: { proxies: [127.0.0.1], api_keys: { file: api-keys.csv } }\n")
	acme, beta := w.apiKeys("add", "acme", "plan=pro"), w.apiKeys("add", "beta", "plan=free")
	s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--listen.resp=unix:resp.sock")
	first := s.await(1, "serving")
	gateway, api, admin := first["gateway"].(string), first["check"].(string), first["admin"].(string)
	doors := map[string]func(key string) bool{
		"gateway": func(key string) bool { return w.status(gateway+"/api/things", "X-Api-Key", key) != 401 },
		"forward-auth": func(key string) bool {
			return w.status(api+"/v1/forward-auth", "X-Api-Key", key) < 300
		},
		"check": func(key string) bool {
			_, said := w.asks(once, api, "check", `{"path":"/api/things","ip":"192.0.2.1","headers":{"X-Api-Key":"`+key+`"}}`)
			return said["decision"] == "allowed"
		},
		"resp": func(key string) bool {
			got := w.command("unix", filepath.Join(w.dir, "resp.sock"), nil, "TG.CHECK PATH /api/things IP 192.0.2.1 HEADER X-Api-Key "+key)
			return strings.Contains(got, "allowed")
		},
	}
	all := func(key string, want bool) {
		t.Helper()
		for door, known := range doors {
			if known(key) != want {
				t.Errorf("%s: the key is known: %v, want %v", door, !want, want)
			}
		}
	}
	all(acme, true)
	all(beta, true)
	all("tg_INVENTED", false)
	_, limits := w.get(once, admin+"/keys?as=customer%3Dacme")
	if !strings.Contains(limits, "acme") {
		t.Errorf("the counters of acme: %s", limits)
	}

	w.write("rules.yaml", "rules: [")
	s.await(1, "rules not reloaded: those loaded before stay in force")
	// A busy machine may miss the second once, not five times.
	took := time.Hour
	for range 5 {
		key := w.apiKeys("add", "short-lived")
		w.until("the new key is known", func() bool { return doors["gateway"](key) })
		w.apiKeys("revoke", "short-lived")
		start := time.Now()
		w.until("the revoked key is unknown", func() bool { return !doors["gateway"](key) })
		if took = min(took, time.Since(start)); took < time.Second {
			break
		}
	}
	if took > time.Second {
		t.Errorf("a revoked key was known for %s", took)
	}
	w.apiKeys("revoke", "acme")
	w.until("the revoked key is unknown", func() bool { return !doors["gateway"](acme) })
	all(acme, false)
	all(beta, true)
	w.until("what becomes of whom is in the log", func() bool {
		return strings.Contains(s.logText(), `"names":"acme","then":"rule known takes them for requests without customer, rule api counts them by address, and takes them for requests without plan"`)
	})

	file := filepath.Join(w.dir, "api-keys.csv")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.write("api-keys.csv", string(text)+"oops,oops\n")
	s.await(1, "API keys not reloaded: those loaded before stay in force")
	all(beta, true)
	for path, want := range map[string]string{
		"/healthz": "the API keys in their file cannot be used", "/readyz": "the API keys in their file cannot be used",
		"/rules": "api-keys.csv:3:1: error: this is not a SHA-256", "/metrics": "\ntidegate_api_keys_current 0\n",
	} {
		if _, page := w.get(once, admin+path); !strings.Contains(page, want) {
			t.Errorf("%s does not say %q:\n%.2000s", path, want, page)
		}
	}
	w.write("api-keys.csv", string(text))
	w.until("the keys are current", func() bool {
		_, page := w.get(once, admin+"/metrics")
		return strings.Contains(page, "\ntidegate_api_keys_current 1\n")
	})
	_, page := w.get(once, admin+"/metrics")
	for _, want := range []string{"\ntidegate_api_keys 1\n", `tidegate_credentials_rejected_total{kind="api_key",reason="unknown"} `, `tidegate_identity_missing_total{identity="customer",source="api_key"} `} {
		if at := strings.Index(page, want); at < 0 || strings.HasPrefix(page[at+len(want):], "0\n") {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if strings.Contains(s.logText(), acme) || strings.Contains(page, acme) {
		t.Error("a key is in the log or in the metrics")
	}
}

// Tokens are verified by the keys of a URL, through its outage, a restart during that, and
// the issuer's next key.
func testKeysOfURL(t *testing.T, bin string) {
	key := func(id string) ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", id))) }
	encode := base64.RawURLEncoding.EncodeToString
	token := func(id string) string {
		text := encode([]byte(`{"alg":"EdDSA","kid":"`+id+`"}`)) + "." + encode([]byte(`{"sub":"alice"}`))
		return "Bearer " + text + "." + encode(ed25519.Sign(key(id), []byte(text)))
	}
	var published atomic.Pointer[string]
	publish := func(ids ...string) {
		var keys []string
		for _, id := range ids {
			keys = append(keys, fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, id, encode(key(id).Public().(ed25519.PublicKey))))
		}
		text := `{"keys":[` + strings.Join(keys, ",") + `]}`
		published.Store(&text)
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		text := published.Load()
		if text == nil {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = rw.Write([]byte(*text))
	}))
	defer issuer.Close()
	w := newSandbox(t, bin, "rules.yaml", trustRules)
	serve := func() (*serving, string, string) {
		s := w.serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml",
			"--trust.jwt.jwks="+issuer.URL+"/jwks.json", "--trust.jwt.copy=jwks-copy.json")
		gateway, admin := s.ready()
		return s, gateway, admin
	}
	_, gateway, _ := func() (*serving, string, string) { publish("a"); return serve() }()
	holds := func(id string) bool { return w.status(gateway+"/users/", "Authorization", token(id)) != 400 }
	if !holds("a") || holds("b") {
		t.Fatal("only tokens of a hold")
	}
	publish("a", "b")
	w.until("tokens of b hold", func() bool { return holds("b") })

	published.Store(nil) // an outage, and a restart during it
	s, gateway2, admin := serve()
	gateway = gateway2
	s.await(1, "the keys that verify tokens could not be fetched: those fetched before stay in use")
	if !holds("a") || !holds("b") {
		t.Error("with the copy, tokens hold")
	}
	if _, page := w.get(once, admin+"/readyz"); !strings.Contains(page, "the keys that verify tokens cannot be fetched, those fetched before are in use") {
		t.Errorf("/readyz says %s", page)
	}
	publish("c")
	s.await(1, "the keys that verify tokens are fetched again")
	if holds("a") || !holds("c") {
		t.Error("the keys are not those that the issuer has now")
	}
	_, page := w.get(once, admin+"/metrics")
	for _, want := range []string{"\ntidegate_jwks_keys 1\n", `tidegate_credentials_rejected_total{kind="token",reason="unknown_key"} `} {
		if at := strings.Index(page, want); at < 0 || strings.HasPrefix(page[at+len(want):], "0\n") {
			t.Errorf("no %q in the metrics", want)
		}
	}
}
