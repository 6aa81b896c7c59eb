// Package rules compiles a rule file into a [Set], which finds the limits that
// apply to a request.
//
// Start with [Load]. A Set is a [tidegate.Matcher], so a Gate accepts it as it is:
//
//	set, err := rules.Load("rules.yaml", rules.Config{})
//	if err != nil {
//		return err // every mistake of the file, with its line
//	}
//	gate := tidegate.NewGate(set, memory.New())
//
// A Set never changes. Where rules are reloaded, give the Gate a [Live], which
// holds the Set in force; counters belong to the names of the rules, so they
// survive the change. [Set.Explain] tells which limits apply to a request and why.
//
// This package matches and counts nothing itself: internal/lang/rulefile reads the
// file, internal/lang/route finds patterns, a store keeps the counts.
package rules
