package main

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate/rules"
)

// load makes a set of n rules, three of which match the request of this program:
// one for everybody, one for a part of the site, one for a single route.
func load(n int) (*rules.Set, error) {
	var b strings.Builder
	b.WriteString(`version: 1
identify:
  user: header X-User
  plan: header X-Plan
rules:
  - { name: site, per: everyone, limits: { rate: 10000/second, burst: 12000, algorithm: token_bucket } }
  - { name: api, match: /api/, per: user, limits: [100/minute, 1000/hour] }
  - { name: orders, match: "POST /api/orders/{id}", per: [user, route], limits: 20/second }
`)
	for i := range n - 3 {
		b.WriteString(other(i))
	}
	set, err := rules.Parse("bench.yaml", []byte(b.String()), rules.Config{})
	if err != nil {
		return nil, err
	}
	if got := len(set.Rules()); got != n {
		return nil, fmt.Errorf("%d rules were loaded, not %d", got, n)
	}
	return set, nil
}

// other returns a rule that does not match: on one of some 500 routes around the
// three, or on the same route and for one customer.
func other(i int) string {
	route := i % 500
	switch {
	case i%10 == 9:
		return fmt.Sprintf("  - { name: customer-%d, match: /api/, when: { user: customer-%d }, per: user, limits: 500/minute }\n", i, i)
	case i%10 >= 6:
		return fmt.Sprintf("  - { name: write-%d, match: \"PUT /api/things%d/{id}\", per: user, limits: 5/second }\n", i, route)
	case i%10 >= 3:
		return fmt.Sprintf("  - { name: read-%d, match: GET /api/lists%d, when: { plan: free }, per: ip, limits: 60/minute }\n", i, route)
	}
	return fmt.Sprintf("  - { name: page-%d, match: /pages/section%d/, per: ip, limits: 300/minute }\n", i, route)
}
