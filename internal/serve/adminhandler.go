package serve

import (
	"context"
	"slices"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/rules/source/feed"
)

// adminOptions returns the options of the admin API, with a feed for followers, or nil.
func (s *server) adminOptions(f *feed.Feed) admin.Options {
	o := admin.Options{
		Audit: &s.audit,
		Board: s.board, Offenders: s.offenders.Snapshot,
		Store: s.counters,
		Ready: []func() error{s.ready},
		Load:  s.signals.Push, LoadLasts: pressure.LoadLasts,
		Metrics:  telemetry.Handler(s.registry),
		Series:   s.series,
		OpenSlip: func(text string) (slip.Slip, error) { return s.slips.sealer().Open(text) },
		Log:      s.log,
	}
	s.admin.options(s.config.Admin, &o)
	if s.rules != nil {
		o.Rules, o.Compile, o.InForce = s.rules, s.compile, s.inForce
		o.CompileFiles, o.KeysOf, o.SubjectOf = s.compileFiles, s.offenders.Keys, s.subjectOf
		o.Apply = &applier{server: s}
		if s.past.History != nil {
			o.History = s.past.History
		}
		if s.rules.Watcher != nil {
			o.Reload = s.rules.Reload
		}
	}
	if f != nil {
		o.Feed, o.Followers = f, func() []admin.InForce { return followersOf(f) }
	}
	if s.defers() {
		o.Deferred = deferredAdmin{&s.deferred}
	}
	if s.plane.Watcher != nil {
		o.Plane = func() any { return s.plane.Status() }
	}
	o.Warnings = func() []string {
		return slices.Concat(s.planeWarnings(), s.formerShards.warnings(len(s.config.Store.Redis.Was)), s.deferred.warnings())
	}
	switch {
	case s.shared != nil:
		o.Survey = s.shared.Store
		o.Health = s.shared.health
		o.Fleet = func(ctx context.Context) (admin.Fleet, error) { return ListFleet(ctx, s.shared.Store) }
	case s.local != nil:
		o.Store = s.local.shares // of a split limit, this instance counts its share
		o.Survey = s.local.memory
		o.Health = s.local.shortage.health
	}
	return o
}
