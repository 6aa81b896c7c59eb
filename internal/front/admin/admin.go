// Package admin is the HTTP API for operators of a running Tidegate. It reports
// whether the process is alive and ready, which rules are in force, who shares the
// counters, who is limited and why, and what was done; it resets and refunds keys,
// bans, gives other limits, and accepts the load signal. It is for the admin listener, never for the one that
// clients reach.
//
// Everything except /healthz and /readyz requires an operator whose role may do it, or, if
// there is no way to tell operators apart, a client on this machine. Every write is logged
// with who made it and why.
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
	// Token returns one that may do everything, which callers present as "Authorization: Bearer
	// TOKEN"; nil means that there is none. It is asked for every request. Without it, Operators,
	// Certificates and SSO whoever is on this machine is let in, and nobody else.
	Token func() string
	// Operators are those with tokens of their own; nil means that there are none. It is
	// asked for every request.
	Operators func() Roster
	// Certificates are the roles of operators by the common names of their verified
	// certificates, "*" for all others; nil means that certificates do not count.
	Certificates map[string]Role
	// SSO is a proxy that says who has signed in; nil means that none is believed.
	SSO *SSO
	// Audit takes an entry about every write; nil means that there is no audit log.
	Audit Audit
	// Rules in force; nil when nothing is limited.
	Rules Rules
	// Compile makes a Set of a rule file that is only looked at; nil means that rules
	// cannot be validated.
	Compile func(name string, src []byte) (*rules.Set, error)
	// CompileFiles is Compile of several files; see [Proposal]. nil means that rules cannot be
	// planned.
	CompileFiles func(*Proposal) (*rules.Set, error)
	// Survey tells what other limits would make of live keys; nil means that nobody can.
	Survey Surveyor
	// KeysOf returns keys of a rule that are worth to be named, for stores that know only
	// hashes; SubjectOf is who a key is, as operators may see it. nil means that none is named.
	KeysOf    func(rule string) []string
	SubjectOf func(l *tidegate.Limit, key string) []offenders.Part
	// Reload reads the rule files again; nil means that there are none.
	Reload func()
	// Board is where bans and overrides are ordered; nil means that nobody can be banned.
	Board Board
	// Offenders returns the lists of this instance; nil means that there are none. Those of
	// the others are asked for by [OffendersTopic] on the Board.
	Offenders func(offenders.Query) offenders.Report
	// InForce returns what this instance says about the rules that it applies; nil means that
	// nothing is limited. The others are asked by [RulesTopic] on the Board.
	InForce func() InForce
	// Feed serves the rules in force to instances that follow this one; nil means that it has
	// none that can be followed.
	Feed http.Handler
	// Followers returns who gets their rules from this instance; nil means nobody.
	Followers func() []InForce
	// History has the rules that were in force; nil means that they are not kept.
	History History
	// Deferred are the requests that rules keep for later; nil means that none are kept.
	Deferred Deferred
	// Store has the counters of Rules; it is needed if Rules is set.
	Store tidegate.Store
	// Ready are asked by /readyz: an error says why requests should go elsewhere.
	// Everybody can read it, so it names no secrets.
	Ready []func() error
	// Plane returns how things are with the control plane that sends rules, for /rules; nil
	// means that there is none.
	Plane func() any
	// Warnings returns what else somebody should look at, for /healthz and /readyz; nil means
	// nothing.
	Warnings func() []string
	// Health returns the state of the store, for /healthz; nil means that it is ok
	// whenever the process answers. Everybody can read it, so it names no secrets.
	Health func() Health
	// Fleet lists the instances that share the counters; nil means that they are of this
	// process.
	Fleet func(context.Context) (Fleet, error)
	// Series returns what was decided on this instance lately, for /series; nil means that there is
	// none. The others are asked by [SeriesTopic] on the Board.
	Series func() Series
	// OpenSlip opens the slip of a refusal; nil means that there are none.
	OpenSlip func(text string) (slip.Slip, error)
	// Load takes the values that are pushed to /load; nil means that there is no /load.
	Load func(value float64) error
	// LoadLasts is how long a pushed value is valid.
	LoadLasts time.Duration
	// Metrics serves /metrics; nil means that there is no /metrics.
	Metrics http.Handler
	// Page has the files of the dashboard, which anybody may read, below /ui/; nil means that there
	// is none.
	Page http.Handler
	// Live streams what the dashboard shows, to operators; nil means that nobody does.
	Live Streamer
	// Fit returns whether the numbers of a rule fit those who are refused; nil means that nobody
	// knows.
	Fit func(rule string) fit.Report
	// Apply puts other rules in force; nil means that they can only be changed where they come from.
	Apply Applier
	// Gateway is the address that clients ask; "" if there is none.
	Gateway string
	// Version of the program.
	Version string
	// Log is told of every write; nil means slog.Default.
	Log *slog.Logger
}

// Streamer sends what is live to a page, for as long as it may see it.
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

// maxRefusals is how many refused writes in a minute have an entry in the audit log.
const maxRefusals = 30

// endpoint is a path, who may use it, and what answers.
type endpoint struct {
	path    string
	need    need
	handler http.Handler
}

// endpoints are all that operators have.
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
		{"/rules/history/files", only(View), s.read(s.rulesOfHistory)},
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
