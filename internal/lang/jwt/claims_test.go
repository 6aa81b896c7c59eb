package jwt

import "testing"

func TestLookup(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "HS256"))
	f := func(claims, name, want string, wantOK bool) {
		t.Helper()
		token := i.token(t, "HS256", claims)
		verified, ok := v.Claims(token)
		unverified, read := Unverified(token)
		if !ok || !read {
			t.Fatalf("%s: verified %v, read %v", claims, ok, read)
		}
		for _, c := range []Claims{verified, unverified} {
			if got, ok := c.Lookup(name); got != want || ok != wantOK {
				t.Errorf("%s of %s: %q, %v, want %q, %v", name, claims, got, ok, want, wantOK)
			}
		}
	}
	f(`{"sub":"alice"}`, "sub", "alice", true)
	f(`{"sub":""}`, "sub", "", true)
	f(`{"sub":"alice"}`, "Sub", "", false)
	f(`{"sub":"j\u00f6rg \ud83d\ude00","더":"값"}`, "sub", "jörg 😀", true)
	f(`{"sub":"alice","더":{"깊은":"값"}}`, "더.깊은", "값", true)
	f("{\"sub\":\"a\xffb\"}", "sub", "a\ufffdb", true)
	f(`{"id":42}`, "id", "42", true)
	f(`{"id":1e3}`, "id", "1000", true)
	f(`{"id":1.50}`, "id", "1.5", true)
	f(`{"id":9007199254740993}`, "id", "9007199254740993", true)
	f(`{"admin":true}`, "admin", "true", true)
	f(`{"admin":false}`, "admin", "false", true)
	f(`{"admin":null}`, "admin", "", false)
	f(`{"roles":["a","b"]}`, "roles", "", false)
	f(`{"roles":["a"]}`, "roles", "", false)
	f(`{"roles":["a"]}`, "roles.0", "", false)
	f(`{"realm":{"role":"a"}}`, "realm", "", false)
	f(`{"realm":{"role":"a"}}`, "realm.role", "a", true)
	f(`{"realm":{"role":"a"}}`, "realm.", "", false)
	f(`{"realm":{"role":"a"}}`, "realm.role.x", "", false)
	f(`{"realm":{"ole":"a"}}`, "realmrole", "", false)
	f(`{"sub":"a","sub":"b"}`, "sub", "", false)
	f(`{"sub":"a","sub":"b","sub":"b"}`, "sub", "", false)
	f(`{"sub":"a","sub":"a"}`, "sub", "a", true)
	f(`{"id":1,"\u0069d":1.0}`, "id", "1", true)
	f(`{"realm":{"role":"a"},"realm":{"role":"b"}}`, "realm.role", "", false)
	f(`{"realm":{"role":"a"},"realm":{"role":"a"}}`, "realm.role", "a", true)
	f(`{"a":1,"a":2,"a.b":3}`, "a.b", "3", true)
	f(`{"realm":{"role":"a"},"realm":{}}`, "realm.role", "", false)

	// Names with dots in them.
	f(`{"https://x.example/role":"a"}`, "https://x.example/role", "a", true)
	f(`{"https://x.example/claims":{"org.id":7}}`, "https://x.example/claims.org.id", "7", true)
	f(`{"a.b":1,"a":{"b":2}}`, "a.b", "1", true)
	f(`{"a":{"b":2},"a.b":1}`, "a.b", "1", true)
	f(`{"":{"":"x"}}`, ".", "x", true)
	f(`{}`, "", "", false)
	f(`{"":"x"}`, "", "x", true)

	if s, ok := (Claims{}).Lookup("sub"); ok || s != "" {
		t.Errorf("no claims have a subject %q", s)
	}
}

func TestUnverifiedReadsWhatDoesNotHold(t *testing.T) {
	i := newIssuer()
	expired := i.token(t, "HS256", `{"sub":"alice","exp":1}`)
	for _, token := range []string{expired, expired[:len(expired)-9] + "forged", "x." + `eyJzdWIiOiJhbGljZSJ9` + "."} {
		c, ok := Unverified(token)
		if sub, _ := c.Lookup("sub"); !ok || sub != "alice" {
			t.Errorf("%s: %q, %v", token, sub, ok)
		}
	}
	for _, token := range []string{"", ".", "..", "a.b", "a.!.c", "a.eyJzdWIiOiJhbGljZSJ9", "a.eyJzdWIiOiJhbGljZSJ9.b.c"} {
		if c, ok := Unverified(token); ok || c != (Claims{}) {
			t.Errorf("%q says %s", token, c.object)
		}
	}
}
