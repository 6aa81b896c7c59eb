package rls_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// A domain with atomic is charged for all descriptors of a call or for none.
func TestAtomic(t *testing.T) {
	config := `
domain: d
tidegate: { atomic: true }
descriptors:
  - { key: wide, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: tight, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: shadowed, rate_limit: { unit: hour, requests_per_unit: 1 }, shadow_mode: true }
  - { key: quota, rate_limit: { unit: hour, requests_per_unit: 1 }, quota_mode: true }
`
	for _, far := range []bool{false, true} {
		o := inMemory(t, config)
		if o.Far = far; far {
			o.Near = nil
		}
		s := serve(t, o)
		s.want("OK | OK 9 of 10/hour | OK 1 of 2/hour", "d", "wide=x", "tight=x")
		s.want("OK | OK 8 of 10/hour | OK 0 of 2/hour", "d", "wide=x", "tight=x")
		for range 3 {
			s.want("OVER | OK 8 of 10/hour | OVER 0 of 2/hour", "d", "wide=x", "tight=x")
		}
		s.want("OVER | OVER 0 of 0/hour | OK 8 of 10/hour", "d", "none=x", "wide=x")
		s.want("OK | OK 8 of 10/hour", "d", "wide=x hits 0")
		s.want("OK | OK 7 of 10/hour | OK 0 of 1/hour", "d", "wide=x", "shadowed=x")
		s.want("OK | OK 6 of 10/hour | OK 0 of 1/hour", "d", "wide=x", "shadowed=x")
		s.want("OK | OK 5 of 10/hour | OK 0 of 1/hour", "d", "wide=x", "quota=x")
		s.want("OVER | OK 5 of 10/hour | OVER 0 of 1/hour", "d", "wide=x", "quota=x")
		s.want("OK | OK 5 of 10/hour", "d", "wide=x hits 0")
	}
}

// Descriptors of domains that no file has are requests to the native rules.
func TestNativeRules(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(`
version: 1
identify: { user: descriptor }
rules:
  - { name: per-user, match: /api/, per: user, limits: { rate: 3/hour, algorithm: fixed_window } }
  - { name: writes, match: POST /files/, per: ip, limits: { rate: 1/hour, algorithm: fixed_window } }
  - { name: closed, match: /secret, deny: true }
`), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	o := inMemory(t, plain)
	for _, far := range []bool{false, true} {
		o.Store = memory.New()
		o.Desk = desk.New(tidegate.NewGate(rules.NewLive(set), o.Store))
		o.Near, o.Far = nil, far
		s := serve(t, o)
		native(t, s)
	}
}

func native(t *testing.T, s *service) {
	t.Helper()
	s.want("OK | OK 2 of 3/hour per-user", "any", "path=/api/x, user=ann")
	s.want("OK | OK 2 of 3/hour per-user", "any", "path=/api/x?q=1, user=ann hits 0")
	s.want("OK | OK 0 of 3/hour per-user", "any", "path=/api/y, user=ann hits 2")
	s.want("OVER | OVER 0 of 3/hour per-user", "any", "path=/api/y, user=ann")
	s.want("OK | OK 2 of 3/hour per-user | OK 0", "any", "path=/api/y, user=bob", "path=/other")
	s.want("OK | OK 0 of 1/hour writes", "any", "method=POST, path=/files/a, remote_address=192.0.2.1")
	s.want("OVER | OVER 0 of 1/hour writes", "any", "method=POST, path=/files/b, remote_address=192.0.2.1")
	s.want("OK | OK 0", "any", "method=GET, path=/files/b, remote_address=192.0.2.1")
	s.want("OK | OK 0 of 1/hour writes", "any", "method=POST, path=/files/b, remote_address=2001:db8::7")
	s.want("OVER | OVER 0 of 0/unknown closed", "any", "path=/secret")
	s.want("OK | OK 4 of 5/hour", "d", "five=x") // the files' domains go first
}

// A call with a mistake in one descriptor charges none of them, wherever it is.
func TestNativeMistakeChargesNothing(t *testing.T) {
	set, err := rules.Parse("rules.yaml", []byte(`
version: 1
identify: { user: descriptor }
rules: [{ name: per-user, match: /, per: user, limits: { rate: 9/hour, algorithm: fixed_window } }]
`), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, far := range []bool{false, true} {
		o := inMemory(t, plain)
		o.Near, o.Far = nil, far
		o.Desk = desk.New(tidegate.NewGate(rules.NewLive(set), o.Store))
		s := serve(t, o)
		for _, address := range []string{"nowhere", "192.0.2.1:80", "fe80::1%eth0", "300.1.1.1", "::g", " "} {
			for at := range 4 {
				all := []string{"user=ann", "user=bob", "user=ann"}
				all = append(all[:at:at], append([]string{"user=ann, remote_address=" + address}, all[at:]...)...)
				if _, err := s.client.ShouldRateLimit(context.Background(), request("any", all...)); status.Code(err) != codes.InvalidArgument {
					t.Errorf("%q: %v", all, err)
				}
			}
		}
		s.want("OK | OK 8 of 9/hour per-user | OK 8 of 9/hour per-user", "any", "user=ann", "user=bob")
	}
}
