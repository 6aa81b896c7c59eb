package fleet_test

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/store/memory"
)

// Five instances of a program share 10 logins an hour without Redis: each has two.
func ExampleSplit() {
	store := fleet.Split(memory.New(), func() int { return 5 })
	lim := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
		Name: "logins", Events: 10, Period: time.Hour,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}},
	}))
	for range 3 {
		d := lim.Allow(context.Background(), "ann")
		fmt.Println(d.OK, d.Remaining)
	}
	// Output:
	// true 1
	// true 0
	// false 0
}
