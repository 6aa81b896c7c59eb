// Package admin is the HTTP API for operators of a running Tidegate. It reports
// whether the process is alive and ready, which rules are in force, who shares the
// counters and what a key has used; it resets a key and accepts the load signal. It is for the admin
// listener, never for the one that clients reach.
//
// Everything except /healthz and /readyz requires the token, or, if none is set,
// a client on this machine. Every write is logged with who made it.
//
// Start with [New].
package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// Options of [New].
type Options struct {
	// Token that callers present as "Authorization: Bearer TOKEN". "" lets in
	// whoever is on this machine, and nobody else.
	Token string
	// Rules in force; nil when nothing is limited.
	Rules Rules
	// Store has the counters of Rules; it is needed if Rules is set.
	Store tidegate.Store
	// Ready are asked by /readyz: an error says why requests should go elsewhere.
	// Everybody can read it, so it names no secrets.
	Ready []func() error
	// Health returns the state of the store, for /healthz; nil means that it is ok
	// whenever the process answers. Everybody can read it, so it names no secrets.
	Health func() Health
	// Fleet lists the instances that share the counters; nil means that they are of this
	// process.
	Fleet func(context.Context) (Fleet, error)
	// Load takes the values that are pushed to /load; nil means that there is no /load.
	Load func(value float64) error
	// LoadLasts is how long a pushed value is valid.
	LoadLasts time.Duration
	// Metrics serves /metrics; nil means that there is no /metrics.
	Metrics http.Handler
	// Log is told of every write; nil means slog.Default.
	Log *slog.Logger
}

// Rules are the rules in force: a [*source.Watcher].
type Rules interface {
	Live() *rules.Live
	Status() source.Status
}

// server has the handlers of the API.
type server struct {
	Options
	guard guard
}

// New returns the admin API.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &server{o, newGuard(o.Token)}
	inner := http.NewServeMux()
	inner.Handle("/rules", s.read(s.rules))
	inner.Handle("/fleet", s.read(s.fleet))
	inner.Handle("/keys", s.read(s.keys))
	inner.Handle("/keys/reset", s.write(s.resetKeys))
	if o.Load != nil {
		inner.Handle("/load", s.write(s.pushLoad))
	}
	if o.Metrics != nil {
		inner.Handle("/metrics", o.Metrics)
	}
	inner.Handle("/debug/pprof/", new(profiles).handler())
	inner.HandleFunc("/openapi.yaml", describeAPI)
	inner.HandleFunc("/", notFound)

	outer := http.NewServeMux()
	outer.Handle("/healthz", s.read(s.alive))
	outer.Handle("/readyz", http.HandlerFunc(s.ready))
	outer.Handle("/", s.guarded(inner))
	return withHeaders(outer)
}

// withHeaders sets the headers of every answer, so that no browser stores it or guesses
// its type.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	problemf(http.StatusNotFound, "There is nothing at %s; there are /healthz, /readyz, /metrics, /rules, /fleet, /keys, /keys/reset, /load, /debug/pprof/ and /openapi.yaml.", r.URL.Path).answer(w)
}
