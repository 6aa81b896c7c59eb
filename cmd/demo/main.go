// Command demo is a small API behind the limiter, to try it with curl. It
// prints the lines to try and what to expect of them. It is what `make run`
// runs until there is a gateway; it is not meant to serve anybody.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// try is a line for the reader's shell and what comes of it.
type try struct{ about, line, want string }

const status = `curl -s -o /dev/null -w '%{http_code} ' `

var tries = []try{
	{
		"5 requests in 10 s for each client address",
		`for i in 1 2 3 4 5 6 7; do ` + status + `URL/api/; done; echo`, "200 200 200 200 200 429 429",
	},
	{"the same once more, with all it says", `curl -s -i URL/api/`, "429, Retry-After, RateLimit and a problem+json body"},
	{
		"a token bucket for each X-User: 3 at once, then one every 20 s",
		`for u in ann ann ann ann bob; do ` + status + `-H "X-User: $u" URL/search; done; echo`, "200 200 200 429 200",
	},
	{
		"2 slots for a report that takes 2 s: of 3 at a time, the one that comes last is refused",
		`(for i in 1 2 3; do ` + status + `URL/reports & sleep 0.3; done; wait; echo)`, "429 200 200",
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends it at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends and the requests under way are done.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "address to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program does; end it, or choose another port, as in: go run ./cmd/demo -listen 127.0.0.1:8081", *listen)
	case err != nil:
		return fmt.Errorf("cannot listen on %s: %w", *listen, err)
	}
	explain(out, "http://"+l.Addr().String())

	srv := &http.Server{Handler: newAPI(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving on %s ended: %w", *listen, err)
	case <-ctx.Done():
	}
	fmt.Fprintln(out, "finishing what is under way; once more to end at once")
	patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return srv.Shutdown(patience)
}

func newAPI() http.Handler {
	store := memory.New()
	perIP := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: 5, Period: 10 * time.Second,
	}))
	perUser := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
		Name: "search", Events: 3, Period: time.Minute, Algorithm: tidegate.TokenBucket,
	}))
	atOnce := tidegate.New(store, tidegate.MustLimit(tidegate.Spec{
		Name: "reports", Events: 2, Period: 30 * time.Second, Algorithm: tidegate.Concurrency,
	}))
	mux := http.NewServeMux()
	mux.Handle("/api/", httplimit.Limit(perIP, httplimit.IP())(say("hello", 0)))
	mux.Handle("/search", httplimit.Limit(perUser, httplimit.Header("X-User"))(say("found it", 0)))
	mux.Handle("/reports", httplimit.Limit(atOnce, httplimit.IP())(say("here is your report", 2*time.Second)))
	return mux
}

// say answers with words after a while.
func say(words string, after time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(after):
			fmt.Fprintln(w, words)
		case <-r.Context().Done():
		}
	})
}
