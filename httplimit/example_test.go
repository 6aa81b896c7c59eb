package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

var api = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "hello")
})

// show asks h and prints what came back.
func show(h http.Handler, header ...string) {
	r := httptest.NewRequest(http.MethodGet, "/api/", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body)
	fmt.Printf("%d %s", w.Code, body)
}

// Two requests a minute from each client address.
func ExampleLimit() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(2))
	handler := httplimit.Limit(lim, httplimit.IP())(api)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/", nil))
		fmt.Printf("%d %s retry %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "default";r=1;t=60 retry ""
	// 200 "default";r=0;t=60 retry ""
	// 429 "default";r=0;t=60 retry "60"
}

// By API key; requests without one are counted by client address.
func ExampleHeader() {
	lim := tidegate.New(memory.New(), tidegate.PerMinute(1))
	handler := httplimit.Limit(lim, httplimit.Header("X-Api-Key"))(api)

	show(handler, "X-Api-Key", "k1", "Accept", "text/plain")
	show(handler, "X-Api-Key", "k1", "Accept", "text/plain")
	show(handler, "X-Api-Key", "k2", "Accept", "text/plain")
	show(handler)
	// Output:
	// 200 hello
	// 429 The quota of the policy default is used up; try again in 60 s.
	// 200 hello
	// 200 hello
}

// Behind a load balancer, the client is who it says it got the request from.
func ExampleIPBehind() {
	balancers := netip.MustParsePrefix("192.0.2.0/24")
	lim := tidegate.New(memory.New(), tidegate.PerMinute(1))
	handler := httplimit.Limit(lim, httplimit.IPBehind(balancers))(api)

	show(handler, "X-Forwarded-For", "203.0.113.7")
	show(handler, "X-Forwarded-For", "invented, 203.0.113.8")
	show(handler, "X-Forwarded-For", "invented too, 203.0.113.8", "Accept", "text/plain")
	// Output:
	// 200 hello
	// 200 hello
	// 429 The quota of the policy default is used up; try again in 60 s.
}

// The headers of another dialect, and an own answer to those turned away.
func ExampleOptions() {
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{
		Name: "burst", Events: 1, Period: 10 * time.Second, Algorithm: tidegate.TokenBucket,
	}))
	handler := httplimit.Options{
		Headers: httplimit.X,
		Render: func(w http.ResponseWriter, _ *http.Request, d tidegate.Decision) {
			w.WriteHeader(httplimit.Status(d))
			fmt.Fprintf(w, "%s of %s left\n", w.Header().Get("X-RateLimit-Remaining"), w.Header().Get("X-RateLimit-Limit"))
		},
	}.Limit(lim, httplimit.IP())(api)

	show(handler)
	show(handler)
	// Output:
	// 200 hello
	// 429 0 of 1 left
}

// At most two reports at a time for each user. The slot is given back when the
// handler returns or the client goes away.
func ExampleLimit_concurrency() {
	lim := tidegate.New(memory.New(), tidegate.Slots(2, 30*time.Second))
	reports := httplimit.Limit(lim, httplimit.Header("X-User"))(api)

	for range 3 { // one after the other
		show(reports, "X-User", "alice")
	}
	// Output:
	// 200 hello
	// 200 hello
	// 200 hello
}
