// Package admin is the HTTP API for operators of a running Tidegate. It reports whether the process
// is alive and ready, which rules are in force, who shares the counters, who is limited and why,
// and what operators did. It resets and refunds keys, bans callers, overrides limits, and accepts
// the load signal. It is for the admin listener, never for the one that clients reach.
//
// Everything except /healthz and /readyz requires an operator whose role permits it or, if there is
// no way to identify operators, a client on this machine. Every write is logged with its author and
// reason.
//
// Start with [New].
package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// Options of [New].
type Options struct {
	// Token returns a token that permits everything, presented as "Authorization: Bearer TOKEN";
	// nil means that there is none. It is called for every request. Without Token, Operators,
	// Certificates and SSO, all clients on this machine are let in, and nobody else.
	Token func() string
	// Operators returns the operators with tokens of their own; nil means that there are none. It
	// is called for every request.
	Operators func() Operators
	// Certificates are the roles of operators by the common name of their verified certificate, "*"
	// for all others; nil means that certificates do not count.
	Certificates map[string]Role
	// SSO describes a proxy that signs operators in; nil means that there is none.
	SSO *SSO
	// Audit records every write; nil means that there is no audit log.
	Audit Audit
	// Rules are the rules in force; nil when nothing is limited.
	Rules Rules
	// Compile makes a Set of a rule file that is only to be checked; nil means that rules cannot be
	// validated.
	Compile func(name string, src []byte) (*rules.Set, error)
	// CompileFiles is Compile of several files; see [Proposal]. nil means that rules cannot be
	// planned.
	CompileFiles func(*Proposal) (*rules.Set, error)
	// Survey tells how other limits would affect live keys; nil means that this is not possible.
	Survey Surveyor
	// KeysOf returns keys of a rule that are worth naming, for stores that know only hashes.
	// SubjectOf returns who a key is, as operators may see it. nil means that none is named.
	KeysOf    func(rule string) []string
	SubjectOf func(l *tidegate.Limit, key string) []offenders.Part
	// Reload reads the rule files again; nil means that there are none.
	Reload func()
	// Board is where bans and overrides are ordered; nil means that they are not possible.
	Board Board
	// Offenders returns the lists of this instance; nil means that there are none. The other
	// instances are asked with [OffendersTopic] on the Board.
	Offenders func(offenders.Query) offenders.Report
	// InForce returns what this instance reports about the rules that it applies; nil means that
	// nothing is limited. The other instances are asked with [RulesTopic] on the Board.
	InForce func() InForce
	// Feed serves the rules in force to instances that follow this one; nil means that they cannot
	// be followed.
	Feed http.Handler
	// Followers returns the instances that get their rules from this one; nil means that there are
	// none.
	Followers func() []InForce
	// History has the rules that were in force; nil means that they are not kept.
	History History
	// Deferred are the requests that rules keep for later; nil means that none are kept.
	Deferred Deferred
	// Store has the counters of Rules; it is needed if Rules is set.
	Store tidegate.Store
	// Ready are called by /readyz: an error says why requests should go elsewhere. Everybody can
	// read it, so it must not contain secrets.
	Ready []func() error
	// Plane returns the state of the control plane that sends rules, for /rules; nil means that
	// there is none.
	Plane func() any
	// Warnings returns further warnings for /healthz and /readyz; nil means that there are none.
	Warnings func() []string
	// Health returns the state of the store, for /healthz; nil means that it is ok while the
	// process answers. Everybody can read it, so it must not contain secrets.
	Health func() Health
	// Fleet lists the instances that share the counters; nil means that this process does not share
	// them.
	Fleet func(context.Context) (Fleet, error)
	// Series returns recent decisions on this instance, for /series; nil means that there are none.
	// The other instances are asked with [SeriesTopic] on the Board.
	Series func() Series
	// OpenSlip opens the slip of a refusal; nil means that there are none.
	OpenSlip func(text string) (slip.Slip, error)
	// Load accepts the values that are pushed to /load; nil means that there is no /load.
	Load func(value float64) error
	// LoadLasts is how long a pushed value is valid.
	LoadLasts time.Duration
	// Metrics serves /metrics; nil means that there is no /metrics.
	Metrics http.Handler
	// Page serves the files of the dashboard below /ui/, which anybody may read; nil means that
	// there is none.
	Page http.Handler
	// Live streams what the dashboard shows to operators; nil means that there is no stream.
	Live Streamer
	// Fit returns whether the numbers of a rule suit the callers that it refuses; nil means that
	// this is unknown.
	Fit func(rule string) fit.Report
	// Apply puts other rules in force; nil means that rules can only be changed at their source.
	Apply Applier
	// Gateway is the address for clients; "" if there is none.
	Gateway string
	// Version of the program.
	Version string
	// Log is told of every write; nil means slog.Default.
	Log *slog.Logger
}

// Streamer streams live data to a page, for as long as the operator may see it.
type Streamer interface {
	Stream(w http.ResponseWriter, r *http.Request, allowed func() bool)
}

// Rules are the rules in force: a [*source.Watcher].
type Rules interface {
	Live() *rules.Live
	Status() source.Status
}

// server has the handlers of the API.
type server struct {
	Options
	guard    guard
	refusals allowance
	routine  routine
}

// maxRefusals bounds the entries per minute about refused writes in the audit log.
const maxRefusals = 30

// endpoint is a path, the role it needs, and its handler.
type endpoint struct {
	path    string
	need    need
	handler http.Handler
}

// endpoints returns all endpoints for operators.
func (s *server) endpoints() []endpoint {
	all := []endpoint{
		{"/rules", only(View), s.read(s.rules)},
		{"/rules/validate", only(View), s.ask(maxRules, s.validate)},
		{"/rules/plan", only(View), s.ask(maxProposal, s.plan)},
		{"/rules/explain", only(View), s.ask(maxBody, s.explain)},
		{"/rules/reload", only(Rule), s.write(s.reload)},
		{"/rules/bundle", only(View), http.HandlerFunc(s.bundle)},
		{"/rules/rule", only(View), s.read(s.oneRule)},
		{"/rules/files", only(View), s.read(s.ruleFiles)},
		{"/rules/apply", only(Rule), s.writeUpTo(maxProposal, s.applyRules)},
		{"/rules/status", only(View), s.read(s.rulesStatus)},
		{"/rules/history", only(View), s.read(s.rulesHistory)},
		{"/rules/history/files", only(View), s.read(s.filesOfHistory)},
		{"/fleet", only(View), s.read(s.fleet)},
		{"/keys", only(View), s.read(s.keys)},
		{"/keys/reset", only(Operate), s.write(s.resetKeys)},
		{"/keys/refund", only(Operate), s.write(s.refundKeys)},
		{"/measures", need{View, Operate}, both(s.read(s.measures), s.write(s.order))},
		{"/measures/end", only(Operate), s.write(s.endMeasure)},
		{"/deferred", only(View), s.read(s.deferred)},
		{"/deferred/retry", only(Operate), s.write(s.retryDeferred)},
		{"/deferred/drop", only(Operate), s.write(s.dropDeferred)},
		{"/deferred/drain", only(Operate), s.write(s.drainDeferred)},
		{"/offenders", only(View), s.read(s.offenders)},
		{"/series", only(View), s.read(s.series)},
		{"/overview", only(View), s.read(s.overview)},
		{"/live", only(View), http.HandlerFunc(s.live)},
		{"/why", only(View), s.write(s.why)},
		{"/audit", only(View), s.read(s.showAudit)},
		{"/debug/pprof/", only(Operate), new(profiles).handler()},
		{"/openapi.yaml", only(View), http.HandlerFunc(describeAPI)},
	}
	if s.Load != nil {
		all = append(all, endpoint{"/load", only(Operate), s.write(s.pushLoad)})
	}
	if s.Metrics != nil {
		all = append(all, endpoint{"/metrics", only(Scrape), s.Metrics})
	}
	return all
}

// API is the admin API, an http.Handler.
type API struct {
	http.Handler
	server *server
}

// New returns the admin API.
func New(o Options) *API {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &server{Options: o, guard: newGuard(&o), refusals: allowance{most: maxRefusals}}
	mux := http.NewServeMux()
	mux.Handle("/healthz", s.read(s.alive))
	mux.Handle("/readyz", http.HandlerFunc(s.ready))
	mux.Handle("/session", http.HandlerFunc(s.session))
	for _, e := range s.endpoints() {
		mux.Handle(e.path, s.access(e.need, e.handler))
	}
	if s.Page != nil {
		mux.Handle("/ui/", s.Page)
		mux.Handle("/{$}", http.RedirectHandler("/ui/", http.StatusSeeOther))
	}
	mux.Handle("/", s.access(only(View), http.HandlerFunc(s.notFound)))
	return &API{withHeaders(mux), s}
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

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/healthz", "/readyz", "/session"}
	for _, e := range s.endpoints() {
		paths = append(paths, e.path)
	}
	problemf(http.StatusNotFound, "There is nothing at %s; there are %s.", strings.ToValidUTF8(r.URL.Path, "?"), listed(paths)).answer(w)
}
