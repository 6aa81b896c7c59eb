package lint_test

import "testing"

func TestEscapableRoute(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "escapable-route", src, want...)
		// And so it is.
		if escaped := newAttacker(t, "version: 1"+src).escapes(); escaped != (len(want) > 0) {
			t.Errorf("an attacker escapes: %t, of%s", escaped, src)
		}
	}
	// What the caller invents, however it is written.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week }
`, "error POST /a")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, missing: refuse, limits: 5/week }
`, "error POST /a")
	f(`
identify: { session: cookie session }
rules:
  - { name: a, match: POST /a, per: session, limits: 5/week }
`, "error POST /a")
	f(`
identify: { key: query key }
rules:
  - { name: a, match: POST /a, per: key, limits: 5/week }
`, "error POST /a")
	f(`
identify: { name: body.name }
rules:
  - { name: a, match: POST /a, per: name, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: unverified jwt.sub }
rules:
  - { name: a, match: POST /a, per: user, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: basic.user }
rules:
  - { name: a, match: POST /a, per: user, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: metadata x-user }
rules:
  - { name: a, match: POST /a, per: user, limits: 5/week }
`, "error POST /a")
	f(`
identify: { id: "path {id}" }
rules:
  - { name: a, match: "GET /a/{id}", per: id, limits: 5/week }
`, `error "GET /a/{id}"`)
	// An address beside it does not help when both are one key.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: [ip, device], limits: 5/week }
`, "error POST /a")
	// A fallback is a way out: leave out the token and invent the key.
	f(`
identify: { caller: [jwt.sub, client header X-Api-Key] }
rules:
  - { name: a, match: POST /a, per: caller, limits: 5/week }
`, "error POST /a")
	// Any token is a method, unless the pattern has one. The host is as free.
	f(`
rules:
  - { name: a, match: /a, per: [ip, method], limits: 5/week }
`, "error /a")
	f(`
rules:
  - { name: a, match: GET /a, per: [ip, method], limits: 5/week }
`)
	f(`
rules:
  - { name: a, match: /a, per: [ip, host], limits: 5/week }
`, "error /a")
	f(`
rules:
  - { name: a, match: example.com/a, per: [ip, host], limits: 5/week }
`)
	// What the caller leaves out.
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: user, missing: skip, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: header X-User }
rules:
  - { name: a, match: POST /a, per: user, missing: skip, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: tls.client_cn }
rules:
  - { name: a, match: POST /a, per: user, missing: skip, limits: 5/week }
`, "error POST /a")
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: ip, when: { user: present }, limits: 5/week }
`, "error POST /a")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, match: POST /a, per: ip, when: { role: free }, limits: 5/week }
`, "error POST /a")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, match: POST /a, per: ip, limits: unlimited, for: [{ when: { role: free }, limits: 5/week }] }
`, "error POST /a")
	f(`
identify: { agent: client header User-Agent }
rules:
  - { name: a, match: POST /a, per: ip, when: { agent: "*bot*" }, limits: 5/week }
`, "error POST /a")
	// No way out.
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: user, limits: 5/week }
`)
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: user, missing: refuse, limits: 5/week }
`)
	f(`
rules:
  - { name: a, match: POST /a, per: everyone, limits: 5/week }
`)
	f(`
rules:
  - { name: a, match: POST /a, per: [ip, route], limits: 5/week }
`)
	f(`
identify: { caller: [client header X-Api-Key, ip] }
rules:
  - { name: a, match: POST /a, per: caller, limits: 5/week }
`, "error POST /a")
	f(`
identify: { caller: [jwt.sub, ip] }
rules:
  - { name: a, match: POST /a, per: caller, limits: 5/week }
`)
	// A descriptor is what your own proxy says.
	f(`
identify: { tenant: descriptor }
rules:
  - { name: a, match: POST /a, per: tenant, limits: 5/week }
`)
	// Who is in a list or is not cannot choose it.
	f(`
lists: { partners: [203.0.113.0/24] }
rules:
  - { name: a, match: POST /a, per: ip, when: { ip: in partners }, limits: 5/week }
`)
	// Another rule for the same requests, or more of them.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a/b, per: device, limits: 5/week }
  - { name: b, match: /a/, per: ip, limits: 100/minute }
`)
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a/b, per: device, limits: 5/week }
  - { name: b, per: everyone, limits: 100/minute }
`)
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a/b, per: device, limits: 5/week }
  - { name: b, match: POST /a/b, per: ip, concurrency: { slots: 5, lease: 30s } }
`)
	// But not one for fewer of them, or for none.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/b, per: ip, limits: 100/minute }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: GET /a/, per: ip, limits: 100/minute }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/, per: ip, limits: 100/minute, mode: shadow }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/, per: ip, limits: 100/minute, mode: disabled }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
lists: { banned: [203.0.113.0/24] }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, when: { ip: in banned }, deny: true }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/, per: ip, limits: unlimited }
`, "error /a/")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/, per: ip, unless: { device: present }, limits: 100/minute }
`, "error /a/")
	// Who is refused without a value has not escaped.
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, match: /a/, per: user, when: { role: [premium, admin] }, limits: 5/week }
  - { name: b, match: /a/, unless: { role: [premium, admin] }, deny: true }
`)
	f(`
identify: { device: client header X-Device, user: jwt.sub }
rules:
  - { name: a, match: /a/, per: device, when: { user: absent }, limits: 5/week }
  - { name: b, match: /a/, per: user, missing: refuse, limits: 5/week }
`)
	// Two rules that share all callers between them.
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: /a/, per: user, when: { user: present }, limits: 600/minute }
  - { name: b, match: /a/, per: ip, when: { user: absent }, limits: 30/minute }
`)
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: /a/, per: user, when: { user: present }, limits: 600/minute }
  - { name: b, match: /a/, per: ip, unless: { user: present }, limits: 30/minute }
`)
	// Those with a key invent one.
	f(`
identify: { key: client header X-Api-Key }
rules:
  - { name: a, match: /a/, per: key, when: { key: present }, limits: 600/minute }
  - { name: b, match: /a/, per: ip, when: { key: absent }, limits: 30/minute }
`, "error /a/")
	// Users are let off one rule and invent their way out of the other.
	f(`
identify: { user: jwt.sub, device: client header X-Device }
rules:
  - { name: a, match: /a/, per: device, limits: 600/minute }
  - { name: b, match: /a/, per: ip, unless: { user: present }, limits: 30/minute }
`, "error /a/")
	// Who is let off by what it has proved was meant to be.
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: /a/, per: ip, unless: { user: present }, limits: 30/minute }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, match: /a/, per: user, limits: 30/minute, for: [{ when: { role: admin }, limits: unlimited }] }
`)
	// A rule that takes the place of another takes its protection away.
	f(`
identify: { user: jwt.sub, device: client header X-Device }
rules:
  - { name: a, match: /a/, per: user, limits: 30/minute }
  - { name: b, match: /a/b, per: device, limits: 300/minute, instead_of: a }
`, "error /a/b")
	f(`
identify: { user: jwt.sub, device: client header X-Device }
rules:
  - { name: a, match: /a/, per: user, limits: 30/minute }
  - { name: b, match: /a/b, per: device, limits: 300/minute, instead_of: a, mode: shadow }
`)
	f(`
identify: { user: jwt.sub, device: client header X-Device }
rules:
  - { name: a, match: /a/, per: user, limits: 30/minute }
  - { name: b, match: /a/b, per: device, limits: 300/minute, instead_of: a }
  - { name: c, match: /a/b, per: ip, limits: 300/minute, instead_of: b }
`)
	// A wildcard is no choice where another pattern says what it stands for.
	f(`
identify: { id: "path {id}", device: client header X-Device }
rules:
  - { name: a, match: /a/b, per: device, limits: 30/minute }
  - { name: b, match: "/a/{id}", per: id, limits: 300/minute }
`, `error "/a/{id}"`)
	f(`
identify: { rest: "path {rest}", device: client header X-Device }
rules:
  - { name: a, match: "/a/b/{id}", per: device, limits: 30/minute }
  - { name: b, match: "/a/{rest...}", per: rest, limits: 300/minute }
`, `error "/a/b/{id}"`, `error "/a/{rest...}"`)
	// What is exempt is not meant to be limited.
	f(`
identify: { device: client header X-Device }
exempt: [{ match: /a/ }]
rules:
  - { name: a, match: POST /a/b, per: device, limits: 5/week }
`)
	// A route is told once, a rule without match is a route as well.
	f(`
identify: { device: client header X-Device, key: client header X-Api-Key }
rules:
  - { name: a, match: /a/, per: device, limits: 5/week }
  - { name: b, match: /a/, per: key, limits: 5/week }
  - { name: c, per: key, limits: 5/week }
`, "error /a/", "error key")
	// Conditions on the host, the method and the route are not the caller's word
	// where the pattern says what they are.
	f(`
rules:
  - { name: a, match: example.com/a, per: ip, when: { host: example.com }, limits: 5/week }
`)
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: [/a, /b], per: device, limits: 5/week }
  - { name: b, match: [/a, /b], per: ip, when: { route: /a }, limits: 5/week }
`, "error /b")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: OPTIONS /a, per: device, limits: 5/week }
  - { name: b, match: /a, per: ip, when: { method: [GET, OPTIONS] }, limits: 5/week }
`)
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: /a, per: device, limits: 5/week }
  - { name: b, match: OPTIONS /a, per: ip, limits: 5/week }
  - { name: c, match: /a, per: ip, when: { method: [GET, POST, PUT, PATCH] }, limits: 5/week }
`, "error /a")
}

// More ways to ask than are tried are still enough to find one.
func TestEscapableRouteOfManyNames(t *testing.T) {
	finds(t, "escapable-route", `
identify:
  { a: query a, b: query b, c: query c, d: query d, e: query e, f: query f, g: query g, h: query h, i: query i, j: query j, k: query k, l: query l }
rules:
  - { name: a, match: /a, per: [a, b, c, d, e, f, g, h, i, j, k, l], limits: 5/week }
`, "error /a")
}
