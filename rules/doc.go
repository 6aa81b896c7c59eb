// Package rules turns a rule file into a [Set] that says, for every request, what
// it is held to.
//
// Start with [Load]; a Set is a [tidegate.Matcher], so a Gate takes it as it is:
//
//	set, err := rules.Load("rules.yaml", rules.Config{})
//	if err != nil {
//		return err // every mistake of the file, with its line
//	}
//	gate := tidegate.NewGate(set, memory.New())
//
// A Set never changes. Where rules are reloaded, a [Live] holds the Set in force
// and is what the Gate asks; counters belong to the names of the rules, so they
// survive the change. [Set.Explain] tells why a request is held to what it is.
//
// This package matches and counts nothing: reading the file is internal/rulefile,
// finding patterns internal/route, the count is kept by a store.
package rules
