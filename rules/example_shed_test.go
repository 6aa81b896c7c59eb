package rules_test

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// client is a request's address.
type client string

func (c client) Value(name string) (string, bool) { return string(c), name == "ip" }

// A program that knows how busy it is pushes that, and its gate refuses the least important requests
// while it is too much.
func ExamplePushed() {
	const text = `
version: 1
classes: [{ name: critical, match: POST /charges }, { name: rest }]
shed: { while: inflight > 2000, never: critical }
rules: [{ name: callers, per: ip, limits: 1000/second }]
`
	var signals rules.Pushed
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) // a clock that stands still, for the example
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{Signals: &signals, Now: func() time.Time { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate := tidegate.NewGate(set, memory.New())
	ask := func(method, path string) (admitted int) {
		for i := range 100 {
			r := &tidegate.Request{Method: method, Path: path, Values: client(fmt.Sprint("192.0.2.", i))}
			if gate.Decide(context.Background(), r).OK {
				admitted++
			}
		}
		return admitted
	}
	_ = signals.Push("inflight", 3000) // in a program, every second or so
	for range 11 {
		fmt.Print(ask("GET", "/"), " ")
		now = now.Add(time.Second)
	}
	fmt.Println("and of charges", ask("POST", "/charges"))
	// Output: 100 93 87 81 69 59 49 38 27 11 0 and of charges 100
}
