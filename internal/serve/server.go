package serve

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/front/dashboard"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/internal/telemetry/traces"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// server is everything that tidegate serve runs.
type server struct {
	config         *config.Config
	stdout, stderr io.Writer
	heir           *handover.Heir
	demo           bool // it was asked for
	version        string
	doorWarnings   rules.DoorWarnings

	// Prepared: all that can be wrong.
	logs
	trust          rules.Trust // whose word rules take
	rules          *ruleSource // nil if nothing is limited
	signals        *pressure.Signals
	registry       *prometheus.Registry
	metrics        *telemetry.Metrics
	traces         *traces.Tracer // nil if nobody gets any
	refusals       *refusals      // nil if none are logged
	offenders      *offenders.Offenders
	certificate    *certificate // nil for plain HTTP
	authorities    *authorities // of clients; nil if their certificates are not asked for
	operators      operators
	slips          slips
	fit            *fit.Fit
	page           *dashboard.Dashboard // nil before the admin listener is open
	audit          audit
	board          *board.Board   // what operators order
	past           past           // rules that were in force
	lately         recorder       // of what was decided
	sample         *demo.Upstream // nil if there are others
	endTraffic     func()         // of the demo; nil if there is none
	upstreams      []*url.URL
	clients, admin net.Listener // clients is nil without a gateway
	checkDoor      checkDoor
	respDoor       respDoor
	rlsDoor        rlsDoor
	plane          plane // sends rules
	deferred       deferred
	following      following
	showing        sync.Mutex // held while metrics are told of new rules

	// shared has the counters of a fleet; nil if they are of this process.
	shared       *shared
	formerShards formerShards

	// Open, when the counters are ours.
	memory      *memory.Store  // nil means they are shared
	snapshotter *snapshotter   // of them; nil means the same
	shortage    *shortage      // of their memory; nil means the same
	shares      *split.Store   // counts in memory; nil means the same
	counters    tidegate.Store // either
	limited     tidegate.Store // the same, with a line to wait in
	gate        *tidegate.Gate // nil without rules
	gateway     atomic.Pointer[gateway.Gateway]
	gateways    []*gateway.Gateway // all that were opened: an upgrade opens one to go on with if it fails
	stopping    atomic.Bool
}

// instances returns how many instances share the limits, as the rules in force say; 0 if they
// do not.
func (s *server) instances() int {
	if s.rules == nil {
		return 0
	}
	return s.rules.live.Set().Instances()
}

// revision is the hash of the rules in force; "" if there are none.
func (s *server) revision() string {
	if s.rules == nil {
		return ""
	}
	return s.rules.Status().Hash
}

// members is instances for counters that are not shared. Nobody knows the rank of this one.
func (s *server) members() (instances, rank int) { return s.instances(), -1 }

// ready returns why requests should go elsewhere, or nil.
func (s *server) ready() error {
	if s.stopping.Load() {
		return errors.New("this process is about to end")
	}
	g := s.gateway.Load()
	if g == nil {
		return nil
	}
	for _, u := range g.Upstreams() {
		if u.Usable {
			return nil
		}
	}
	return errors.New("all upstreams are out of order")
}
