package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// Member is an instance of the fleet as its last heartbeat described it, at most a few seconds
// ago. Characters that a terminal takes for commands are removed from its texts.
type Member struct {
	ID   string // differs in every process
	Self bool   // it is this Store
	// Known: its heartbeat describes it. Those of older versions do not, and the fields below
	// are then zero.
	Known bool

	Name    string // Options.Name
	Version string // Options.Version
	Rules   string // the revision of its rules, shortened; "" if it has none
	Started time.Time
	Seen    time.Time // its last heartbeat

	// Clock is how its clock compares with that of Redis.
	Clock Clock
	// Status of its circuit is OK, Partial, Degraded or Recovering, and Since is when it
	// became OK or ceased to be.
	Status string
	Since  time.Time
	// Out names the first few masters of a Redis Cluster, or shards, that are not OK for it; OutCount is
	// how many there are.
	Out      []string
	OutCount int

	Backlog      int64 // counters that something is still to be charged to
	Leases       int   // leases that it holds
	LeasedEvents int64 // events that it may still admit by these
	// Lag is how old the knowledge of others is about what it has counted of [tidegate.Eventual]
	// limits; 0 if it has counted nothing.
	Lag time.Duration
	// Follows: it obeys what operators order (see [Follow]). Orders is the version of the orders
	// that it has; an instance with a lower one than others is behind.
	Follows bool
	Orders  int64
	// Instances is how many instances it counts: where it decides alone, its share of a limit
	// is one in so many.
	Instances int
}

// Members lists the instances that share the limits, by name. An instance that was closed is gone
// at once, one that died after ten seconds. If it returns an error as well, Redis, some masters of
// a cluster or some shards have not answered. Once it has joined, this instance is always listed.
//
// A Store need not have joined to ask: see [Options].JoinLater.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	entries, err := s.shared.Entries(ctx)
	now := time.Now()
	isSelf := func(e chain.Entry) bool { return e.ID == s.registry.ID() }
	if s.joined.Load() && !slices.ContainsFunc(entries, isSelf) {
		entries = append(entries, chain.Entry{ID: s.registry.ID(), About: s.about()})
	}
	all := make([]Member, 0, len(entries))
	for _, e := range entries {
		m := memberOf(e, now)
		m.Self = isSelf(e)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

// memberOf reads what an instance has told with its heartbeat.
func memberOf(e chain.Entry, now time.Time) Member {
	m := Member{ID: label(e.ID, maxName)}
	r, ok := readRecord(e.About)
	if !ok {
		return m
	}
	m.Known, m.Name, m.Version, m.Rules = true, r.Name, r.Version, r.Rules
	m.Seen = now.Add(-e.Age)
	m.Started, m.Since = m.Seen.Add(-r.Up.duration()), m.Seen.Add(-r.For.duration())
	if r.Within > 0 {
		m.Clock = Clock{Server: r.Server, Offset: r.Offset.duration(), Within: r.Within.duration()}
	}
	m.Status, m.Out, m.OutCount = r.Status, r.Out, r.OutCount
	if r.Orders != nil {
		m.Follows, m.Orders = true, *r.Orders
	}
	m.Backlog, m.Leases, m.LeasedEvents, m.Instances = r.Backlog, r.Leases, r.LeasedEvents, r.Instances
	m.Lag = r.Lag.duration()
	return m
}

// about returns what this instance tells with a heartbeat.
func (s *Store) about() string {
	h := s.Health()
	r := record{
		Name: s.name, Version: s.version, Status: h.Status,
		Up: secondsOf(time.Since(s.opened)), For: secondsOf(time.Since(h.Since.Add(-s.o.skew))),
		Backlog: s.Stats().Backlog, Leases: h.Leases, LeasedEvents: h.LeasedEvents, Instances: h.Instances,
		Lag:    secondsOf((h.Lag + time.Millisecond - 1).Truncate(time.Millisecond)), // 0 means none
		Offset: secondsOf(h.Clock.Offset), Within: secondsOf(h.Clock.Within), Server: h.Clock.Server,
	}
	if s.o.Rules != nil {
		r.Rules = s.o.Rules()
	}
	if version, follows := s.board.Version(); follows {
		r.Orders = &version
	}
	for _, one := range h.Servers {
		if one.Status != OK {
			r.Out = append(r.Out, one.Name)
			r.OutCount++
		}
	}
	return r.encode()
}
