package rules

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

const secret = "a secret that is long enough for HS256"

// token signs claims, given as JSON.
func token(key, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

func trusting(now func() time.Time) Config {
	return Config{
		Trust: Trust{JWT: &JWT{Key: "jwt.key", Issuer: "https://id.example.com"}},
		Now:   now,
		ReadFile: func(string) ([]byte, error) {
			return []byte(secret + "\n"), nil
		},
	}
}

// Trap: only a token that holds says who is asking, and what they may.
func TestTrapForgedToken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	set := parse(t, `
identify: { user: jwt.sub, plan: jwt.plan.name }
rules:
  - { name: api, per: user, limits: 10/minute, for: [{ when: { plan: gold }, limits: 50/minute }] }
`, trusting(func() time.Time { return now }))
	f := func(header, want string) {
		t.Helper()
		heldTo(t, set)(request("GET /", "ip", "192.0.2.1", "client header Authorization", header), "api: "+want)
	}
	const claims = `{"iss":"https://id.example.com","sub":"42","plan":{"name":"gold"},"exp":1800000600}`
	const stranger = "10/1m0s sliding_log per ip 192.0.2.1"
	f("Bearer "+token(secret, claims), "50/1m0s sliding_log per user 42")
	f("bearer  "+token(secret, claims), "50/1m0s sliding_log per user 42")
	f("Basic "+token(secret, claims), stranger)
	f(token(secret, claims), stranger)
	f("Bearer "+token("another key that is just as long as it", claims), stranger)
	f("Bearer "+strings.Replace(token(secret, claims), ".", ".eyJzdWIiOiI0MiJ9", 1), stranger)
	f("Bearer "+token(secret, strings.Replace(claims, "id.example", "evil.example", 1)), stranger)
	f("Bearer "+token(secret, strings.Replace(claims, "1800000600", "1700000000", 1)), stranger)
	f("Bearer ", stranger)
	// A number is who is asking, too; a claim that is none is not.
	f("Bearer "+token(secret, strings.Replace(claims, `"42"`, `4711`, 1)), "50/1m0s sliding_log per user 4711")
	f("Bearer "+token(secret, strings.Replace(claims, `"42"`, `["42"]`, 1)), "50/1m0s sliding_log per ip 192.0.2.1")

	note := func(token, want string) {
		t.Helper()
		r := request("GET /", "client header Authorization", "Bearer "+token)
		if got := set.Explain(r).Identities[1]; got.Name != "plan" || !got.Missing || got.Note != want {
			t.Errorf("%+v, want the note %q", got, want)
		}
	}
	note(token(secret, strings.Replace(claims, "gold", "", 1)), "the token has no claim plan.name")
	note(token("another key that is just as long as it", claims), "the token is forged, expired or not for this service (bad_signature)")

	now = now.Add(time.Hour)
	f("Bearer "+token(secret, claims), stranger)
}

func TestTokensWithoutKeys(t *testing.T) {
	const src = "identify: { user: jwt.sub, loose: unverified jwt.sub }\nrules:\n" +
		"  - { name: api, match: /a, per: user, limits: 10/minute }\n" +
		"  - { name: odd, match: /b, per: loose, limits: 10/minute }\n"
	set := parse(t, src, Config{})
	auth := "Bearer " + token(secret, `{"sub":"42"}`)
	heldTo(t, set)(request("GET /a", "ip", "192.0.2.1", "client header Authorization", auth), "api: 10/1m0s sliding_log per ip 192.0.2.1")
	heldTo(t, set)(request("GET /b", "ip", "192.0.2.1", "client header Authorization", auth), "odd: 10/1m0s sliding_log per loose 42")
	if got := set.Warnings().Error(); !strings.Contains(got, "rules.yaml:2:19: warning: `user` is read from tokens") {
		t.Errorf("warnings:\n%s", got)
	}

	c := trusting(nil)
	if got := parse(t, src, c).Files(); len(got) != 2 || got[1] != "jwt.key" {
		t.Errorf("files to watch: %v", got)
	}
	c.ReadFile = func(string) ([]byte, error) { return []byte("short"), nil }
	if _, err := Parse("rules.yaml", []byte("version: 1\n"+src), c); err == nil || !strings.Contains(err.Error(), "jwt.key") {
		t.Errorf("a key that is none: %v", err)
	}
}

// Also what takes a number from the token has to say that it never will.
func TestNumbersFromTokensWithoutKeys(t *testing.T) {
	const src = "identify: { user: [jwt.sub, ip] }\nrules:\n" +
		"  - { name: api, per: user, limits: { from: jwt.rpm, per: minute, max: 100, else: 10 } }\n" +
		"  - { name: plan, per: user, quota: { amount: 5/month, anchor: jwt.billing_day } }\n" +
		"  - { name: chat, per: user, limits: 10/minute, cost: { reserve: jwt.cost, else: 1 } }\n"
	var at []string
	for _, w := range parse(t, src, Config{}).Warnings() {
		at = append(at, fmt.Sprintf("%d:%d", w.Line, w.Col))
	}
	if got := strings.Join(at, " "); got != "2:20 4:45 5:64 6:66" {
		t.Errorf("warned at %s", got)
	}
	if warnings := parse(t, src, trusting(time.Now)).Warnings(); len(warnings) > 0 {
		t.Errorf("with a key: %v", warnings)
	}
}
