package rules

import "testing"

func TestCredential(t *testing.T) {
	set, err := Parse("rules.yaml", []byte(`version: 1
identify:
  user: header X-User
  key: client header X-Api-Key
  proxied: header X-Api-Key
  device: cookie device
  asked: query who
  email: body.email
  one: [jwt.sub, cookie sid, ip]
  org: path {org}
rules:
  - { name: all, per: [user, key, proxied, device, asked, email], limits: 1/second }
  - { name: some, per: one, limits: 1/second }
  - { name: path, match: "/orgs/{org}/", per: [org, route, method, host], limits: 1/second }
`), Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(part string, want bool) {
		t.Helper()
		if got := set.Credential(part); got != want {
			t.Errorf("Credential(%q) = %t", part, got)
		}
	}
	f("user", false)
	f("key", true)
	f("proxied", true)
	f("device", true)
	f("asked", true)
	f("email", false)
	f("org", false)
	f("ip", false)
	f("one/jwt.sub", false)
	f("one/cookie sid", true)
	f("one/ip", false)
	f("one", true) // no counter is called so
	f("route", false)
	f("method", false)
	f("host", false)
	f("gone", true)
}

func TestNamesCredential(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		if got := NamesCredential(name); got != want {
			t.Errorf("NamesCredential(%q) = %t", name, got)
		}
	}
	for _, name := range []string{"X-Api-Key", "api_key", "apikey", "key", "Authorization", "auth.token", "X-Session-Id", "client_secret", "Cookie"} {
		f(name, true)
	}
	for _, name := range []string{"X-User", "user_id", "remote_address", "generic_key", "tenant", "header_match", "keyboard"} {
		f(name, false)
	}
}
