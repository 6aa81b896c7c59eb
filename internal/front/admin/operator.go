package admin

import (
	"context"
	"slices"
)

// Operator is who uses the API.
type Operator struct {
	Name string
	Role Role
	Via  string // how the operator was identified: local, token, session, certificate or sso
}

// Role is what an operator may do. Each role includes those before it.
type Role uint8

const (
	// Nobody may do anything.
	Nobody Role = iota
	// Scrape may read the metrics.
	Scrape
	// View may read everything, and have rules validated and explained.
	View
	// Operate may reset, refund, ban, override, change deferred requests, push the load signal and
	// take profiles.
	Operate
	// Rule may change the rules in force.
	Rule
)

var roleNames = []string{"nobody", "scrape", "view", "operate", "rule"}

// String returns the word for the role in files and settings.
func (r Role) String() string { return roleNames[r] }

// ParseRole returns the role of a word; Nobody if there is none.
func ParseRole(word string) Role { return Role(max(slices.Index(roleNames, word), 0)) }

type operatorKey struct{}

func withOperator(ctx context.Context, o Operator) context.Context {
	return context.WithValue(ctx, operatorKey{}, o)
}

// operatorOf returns the operator of the request with ctx.
func operatorOf(ctx context.Context) Operator {
	o, _ := ctx.Value(operatorKey{}).(Operator)
	return o
}
