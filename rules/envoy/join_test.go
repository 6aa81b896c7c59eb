package envoy_test

import (
	"slices"
	"testing"

	"tidegate.dev/tidegate/rules/envoy"
)

// Join has the domains of both sets; one that both have is the receiver's. It changes neither.
func TestJoin(t *testing.T) {
	load := func(domains ...string) *envoy.Set {
		var files []envoy.File
		for _, d := range domains {
			files = append(files, envoy.File{Name: d, Text: []byte("domain: " + d + "\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n")})
		}
		set, err := envoy.Load(files, envoy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	var none *envoy.Set
	a, b := load("x", "y"), load("y", "z")
	f := func(s, other *envoy.Set, want, common []string) {
		t.Helper()
		joined := s.Join(other)
		if got := joined.Domains(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if got := s.Common(other); !slices.Equal(got, common) {
			t.Errorf("common %v, want %v", got, common)
		}
		for _, name := range want {
			from := s.Domain(name)
			if from == nil {
				from = other.Domain(name)
			}
			if joined.Domain(name) != from {
				t.Errorf("%s is taken from the wrong set", name)
			}
		}
	}
	f(a, b, []string{"x", "y", "z"}, []string{"y"})
	f(b, a, []string{"x", "y", "z"}, []string{"y"})
	f(none, a, []string{"x", "y"}, nil)
	f(a, none, []string{"x", "y"}, nil)
	f(none, none, nil, nil)
	if got := a.Domains(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("a is now %v", got)
	}
}
