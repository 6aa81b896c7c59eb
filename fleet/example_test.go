package fleet_test

import (
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

// One limit for all callers together, 20,000 a second, that is asked for with every request:
// the instances take events ahead, and Redis is asked seldom.
func Example_leased() {
	store, err := fleet.Open("redis://localhost:6379", fleet.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	lim := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
		Events: 20_000, Period: time.Second,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
	}))

	everyone := func(*http.Request) (string, bool) { return "everyone", true }
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", httplimit.Limit(lim, everyone)(mux)))
}
