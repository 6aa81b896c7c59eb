package fleet_test

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
)

var mux = http.NewServeMux()

// A hundred a minute for each client address, however many instances there are. What is
// inside is also in the README.
func Example() {
	store, err := fleet.Open("redis://localhost:6379", fleet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	lim := tidegate.New(store, tidegate.PerMinute(100))

	log.Fatal(http.ListenAndServe("127.0.0.1:8080", httplimit.Limit(lim, httplimit.IP())(mux)))
}

// One limit for all callers together, 20,000 a second, that every request is held to: the
// instances take events ahead, and Redis is asked seldom. One word is enough.
func Example_leased() {
	store, err := fleet.Open("redis://localhost:6379", fleet.Options{}) // which need not be there yet
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	limit := tidegate.MustLimit(tidegate.Spec{
		Name: "site", Events: 20_000, Period: time.Second,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
	})
	lim := tidegate.New(store, limit)
	everyone := func(*http.Request) (string, bool) { return "everyone", true }
	mux.Handle("/site/", httplimit.Limit(lim, everyone)(http.NotFoundHandler()))

	fmt.Println(limit)
	// Output: site: 20000/1s token_bucket burst 20000
}

// Three servers that know nothing of each other: each has a third of the keys, by the names of the
// shards.
func ExampleOpen_shards() {
	store, err := fleet.Open("", fleet.Options{Shards: []fleet.Shard{ // which need not be there yet
		{Name: "a", URL: "redis://localhost:6379"},
		{Name: "b", URL: "redis://localhost:6380"},
		{Name: "c", URL: "redis-sentinel://localhost/mymaster"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	lim := tidegate.New(store, tidegate.PerMinute(100)) // of each key, wherever it lives
	mux.Handle("/", httplimit.Limit(lim, httplimit.IP())(http.NotFoundHandler()))

	for _, server := range store.Health().Servers {
		fmt.Println(server.Name)
	}
	// Output:
	// a
	// b
	// c
}
