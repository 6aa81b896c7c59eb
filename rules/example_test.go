package rules_test

import (
	"context"
	"fmt"
	"log"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// A Set is a Matcher: with a store it makes a Gate.
func ExampleLoad() {
	set, err := rules.Load("../docs/examples/login.yaml", rules.Config{})
	if err != nil {
		log.Fatal(err) // every mistake, with its line and what to write instead
	}
	gate := tidegate.NewGate(set, memory.New())
	login := &tidegate.Request{Method: "POST", Path: "/login", Values: from("203.0.113.9")}
	for range 6 {
		d := gate.Decide(context.Background(), login)
		fmt.Println(d.OK, d.Limit.Terms.Rule)
	}
	// Output:
	// true login
	// true login
	// true login
	// true login
	// true login
	// false login
}

// What one rule makes of a request, where there may be thousands.
func ExampleLive_ExplainRule() {
	set, err := rules.Load("../docs/examples/login.yaml", rules.Config{})
	if err != nil {
		log.Fatal(err)
	}
	live := rules.NewLive(set)
	e := live.ExplainRule(&tidegate.Request{Method: "POST", Path: "/login", Values: from("203.0.113.9")}, "login")
	for _, r := range e.Rules {
		fmt.Println(r.Name, r.Applies, r.Key)
	}
	// Output:
	// login true 203.0.113.9
}

// from is what is known of a request: here only the address that it comes from.
type from string

func (f from) Value(name string) (string, bool) { return string(f), name == "ip" }
