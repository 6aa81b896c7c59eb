package tidegate_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// What is inside the functions below is also the code of the README.

var (
	ctx = context.Background()
	mux = http.NewServeMux()
)

// A hundred a minute for each user.
func Example() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))

	if d := lim.Allow(ctx, "user:42"); !d.OK {
		fmt.Println("too many requests, try again in", d.RetryAfter)
		return
	}
	fmt.Println("served")
	// Output: served
}

// Several limits are charged together or not at all. The decision is about the
// one that refuses, or is nearest to it.
func Example_severalLimits() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(2), tidegate.PerDay(1000))

	for range 3 {
		d := lim.Allow(ctx, "user:42")
		fmt.Println(d.OK, d.Remaining, "left of", d.Limit)
	}
	// Output:
	// true 1 left of 2/1m0s sliding_log
	// true 0 left of 2/1m0s sliding_log
	// false 0 left of 2/1m0s sliding_log
}

// Waiting for a turn. If it would come after the deadline of the context, Wait
// says so at once.
func ExampleLimiter_Wait() {
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{
		Events: 100, Period: time.Second, Burst: 1, Algorithm: tidegate.TokenBucket,
	}))

	for page := range 3 {
		if err := lim.Wait(ctx, "crawler"); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("fetching page", page)
	}
	// Output:
	// fetching page 0
	// fetching page 1
	// fetching page 2
}

// The cost is known only afterwards: reserve what it can be, settle what it was.
func ExampleLimiter_Reserve() {
	lim := tidegate.New(memory.New(), tidegate.PerHour(10_000))

	tokens := lim.Reserve(ctx, "user:42", 4000)
	if !tokens.OK {
		fmt.Println("not enough tokens left, try again in", tokens.RetryAfter)
		return
	}
	used := int64(1234) // what the model says it took
	if err := tokens.Settle(used); err != nil {
		log.Print(err)
	}
	fmt.Println(lim.Peek(ctx, "user:42").Remaining)
	// Output: 8766
}

// Two reports at a time for each user. The slot of a process that dies is free
// again after a lease of 30 s; as long as it lives, the slot is renewed.
func ExampleLimiter_Acquire() {
	lim := tidegate.New(memory.New(), tidegate.Slots(2, 30*time.Second))

	slot := lim.Acquire(ctx, "user:42")
	if !slot.OK {
		fmt.Println("two of your reports are being made already")
		return
	}
	defer slot.Cancel()
	fmt.Println("making the report,", slot.Remaining, "more can be made meanwhile")
	// Output: making the report, 1 more can be made meanwhile
}

// In front of an http.Handler, by client address.
func Example_middleware() {
	lim := tidegate.New(memory.New(), tidegate.PerSecond(5), tidegate.PerHour(1000))

	log.Fatal(http.ListenAndServe("127.0.0.1:8080", httplimit.Limit(lim, httplimit.IP())(mux)))
}

// The call ends in another process: hand the receipt on as text. Not to a client, unless
// it is signed: whoever has it can refund.
func ExampleLimiter_Settle() {
	lim := tidegate.New(memory.New(), tidegate.PerHour(10_000)) // for several processes, package fleet

	tokens := lim.Reserve(ctx, "user:42", 4000)
	text, err := tokens.Receipt.MarshalText()
	if err != nil {
		log.Print(err)
		return
	}

	var receipt tidegate.Receipt
	if err := receipt.UnmarshalText(text); err != nil {
		log.Print(err)
		return
	}
	if err := lim.Settle(ctx, receipt, 1234); err != nil {
		log.Print(err)
	}
	fmt.Println(lim.Peek(ctx, "user:42").Remaining)
	// Output: 8766
}
