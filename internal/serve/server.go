package serve

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/internal/telemetry/traces"
	"tidegate.dev/tidegate/rules"
)

// server is everything that tidegate serve runs. prepare creates what can fail, open what needs the
// counters.
type server struct {
	config         *config.Config
	stdout, stderr io.Writer
	heir           *handover.Heir
	version        string
	example        example
	stopping       atomic.Bool

	logs
	observed

	// The rules, and where they come from.
	trust        rules.Trust // which credentials the rules accept
	rules        *ruleSource // nil if nothing is limited
	doorWarnings rules.DoorWarnings
	plane        plane // the control plane that sends rules
	following    following
	past         past       // history of the rules
	showing      sync.Mutex // held while metrics are told about new rules

	// The counters: either shared or local is nil. local is created by open.
	shared       *shared // the counters of a fleet
	formerShards formerShards
	local        *localCounters // of this process alone
	counters     tidegate.Store // that of shared or local
	limited      tidegate.Store // the same, with queues for waiting requests
	gate         *tidegate.Gate // nil without rules
	deferred     deferred

	// The listeners.
	gateway   gatewayFront
	checkDoor checkDoor
	respDoor  respDoor
	rlsDoor   rlsDoor
	admin     adminFront

	// For operators.
	audit audit
	board *board.Board // their bans and overrides
	slips slips
}

// observed is what makes decisions visible, besides the logs.
type observed struct {
	registry  *prometheus.Registry
	metrics   *telemetry.Metrics
	signals   *pressure.Signals // for elastic limits and shedding
	traces    *traces.Tracer    // nil if traces are not sent
	refusals  *refusals         // nil if none are logged
	offenders *offenders.Offenders
	fit       *fit.Fit
	lately    recorder
}

// example is the API to try Tidegate with, in place of upstreams.
type example struct {
	asked      bool           // by --demo
	upstream   *demo.Upstream // nil if there are other upstreams
	endTraffic func()         // nil if there is no generated traffic
}

// instances returns how many instances share the limits, according to the rules in force; 0 if they
// do not say.
func (s *server) instances() int {
	if s.rules == nil {
		return 0
	}
	return s.rules.live.Set().Instances()
}

// revision returns the hash of the rules in force; "" if there are none.
func (s *server) revision() string {
	if s.rules == nil || s.rules.Watcher == nil {
		return ""
	}
	return s.rules.Hash()
}

// members returns instances, for counters that are not shared. The rank of this instance is unknown
// (-1).
func (s *server) members() (instances, rank int) { return s.instances(), -1 }

// ready returns why requests should go elsewhere, or nil.
func (s *server) ready() error {
	if s.stopping.Load() {
		return errors.New("this process is about to end")
	}
	g := s.gateway.current.Load()
	if g == nil {
		return nil
	}
	for _, u := range g.Upstreams() {
		if u.Usable {
			return nil
		}
	}
	return errors.New("all upstreams fail their probes")
}
