package serve

import (
	"context"
	"errors"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/serve/origins"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/rules/source"
)

// ruleSource is the source of the rules in force: files that are followed, or the example.
type ruleSource struct {
	*source.Watcher // nil for the example
	live            *rules.Live
	since           time.Time
}

// exampleName is the name of the rules of the example, which have no file.
const exampleName = "(example rules)"

// loadRules loads the rules, and follows their changes even after ctx has ended. It returns nil if
// there are none, and the error of ctx if that ends before they are loaded.
func (s *server) loadRules(ctx context.Context) (*ruleSource, error) {
	set := func(_, now *rules.Set) {
		s.showRules(now)
		s.metrics.WatchCosts(now.Clamped)
	}
	s.trust = trustOf(s.config.Trust)
	c := s.rulesConfig()
	r := &ruleSource{since: time.Now()}
	switch {
	case len(s.config.Rules) > 0:
		layers, err := s.layers()
		if err != nil {
			return nil, err
		}
		first := true
		from := s.config.RulesSource
		loading, stop := context.WithCancel(context.Background())
		loaded := context.AfterFunc(ctx, stop)
		w, err := source.Follow(loading, layers, source.Options{
			Copy: from.Copy, Handed: s.heir.Left(), Open: from.Start == config.OpenStart, Wait: from.Wait,
			Config: c, Log: s.log,
			OnWarnings: func(doubts rules.Problems) {
				if !first { // doubts reports those of the start
					s.warn(doubts)
				}
				first = false
			},
			OnReload: func(old, now *rules.Set) {
				set(old, now)
				if s.shared != nil { // refused keys may now be admitted
					s.shared.Forget()
				}
				s.warn(append(s.unmet(now), s.doorWarnings.Of(now)...))
				s.auditRules(nil)
				s.past.note()
				s.following.changed()
			},
			OnError: s.auditRules,
		})
		if !loaded() {
			if err == nil {
				w.Close()
			}
			return nil, ctx.Err()
		}
		if err != nil {
			stop()
			return nil, mistakes(err)
		}
		r.Watcher, r.live = w, w.Live()
		s.following.watcher.Store(w)
		s.audit.follow(w.Status)
		s.past.follow(w)
	case s.example.asked:
		example, err := rules.Parse(exampleName, demo.Rules, c)
		if err != nil {
			return nil, mistakes(err)
		}
		r.live = rules.NewLive(example)
	default:
		return nil, nil
	}
	set(nil, r.live.Set())
	s.metrics.WatchMeasures(r.measures)
	s.metrics.WatchRules(func() telemetry.RulesStatus {
		st := r.Status()
		return telemetry.RulesStatus{
			Reloads: st.Reloads, Failed: st.Failed, LoadedAt: st.LoadedAt, Revision: shownRevision(st.Hash),
			Failing: st.LastError != "", FailingSince: st.Since, Layers: layerStats(&st),
		}
	})
	s.metrics.WatchTrust(r.trust)
	return r, nil
}

// layers returns the layers that the rules come from.
func (s *server) layers() ([]source.Layer, error) {
	from := s.config.RulesSource
	return origins.Layers(s.config.Rules, origins.Options{
		TokenFile: from.TokenFile, User: from.User, PasswordFile: from.PasswordFile,
		CA: from.CA, Cert: from.Cert, Key: from.Key, Wait: from.Wait, Node: s.nodeName(), Report: s.report,
	})
}

// leaveRules writes the rules in force that are not on disk for a successor, which may not reach
// their source.
func (s *server) leaveRules(folder string) error {
	if s.rules == nil || s.rules.Watcher == nil {
		return nil
	}
	return s.rules.KeepCopies(folder)
}

// maxRevision is how much of a revision is shown, as in `tidegate fleet`.
const maxRevision = 16

func shownRevision(hash string) string { return hash[:min(len(hash), maxRevision)] }

// rulesConfig returns the configuration that rules are compiled with.
func (s *server) rulesConfig() rules.Config {
	return rules.Config{Trust: s.trust, Signals: s.signals, OnShed: s.logShed, IgnoreCase: s.config.Paths.Case == config.Insensitive, MergeDomains: s.config.RLS.MergeDomains}
}

// showRules tells the metrics which rules are in force, from files and from the control plane.
func (s *server) showRules(files *rules.Set) {
	s.showing.Lock() // both may change at the same time
	defer s.showing.Unlock()
	var names []string
	var limits []*tidegate.Limit
	var domains *envoy.Set
	if files != nil {
		names, limits, domains = slices.Clone(files.Rules()), slices.Clone(files.Limits()), files.Domains()
	}
	for _, r := range domainRules(s.plane.join(domains)) {
		names, limits = append(names, r.Path), append(limits, r.Limits...)
	}
	s.metrics.SetRules(names, limits)
	s.formerShards.setLimits(limits)
	s.offenders.SetRules(names)
	s.fit.SetLimits(limits)
}

func trustOf(t config.Trust) rules.Trust {
	var trust rules.Trust
	if j := t.JWT; j.Key != "" || j.JWKS != "" {
		trust.JWT = &rules.JWT{Key: j.Key, JWKS: j.JWKS, Refresh: j.Refresh, Copy: j.Copy, Issuer: j.Issuer, Audience: j.Audience}
	}
	if k := t.APIKeys; k.File != "" {
		trust.APIKeys = &rules.APIKeys{From: k.From, File: k.File}
	}
	return trust
}

// mistakes returns the problems of a file if err is about one, and err otherwise.
func mistakes(err error) error {
	var load *rules.LoadError
	if errors.As(err, &load) {
		return load.Problems
	}
	return err
}

// Live implements [admin.Rules].
func (r *ruleSource) Live() *rules.Live { return r.live }

// Status implements [admin.Rules].
func (r *ruleSource) Status() source.Status {
	if r.Watcher != nil {
		return r.Watcher.Status()
	}
	return source.Status{LoadedAt: r.since}
}

func (r *ruleSource) close() {
	if r.Watcher != nil {
		r.Watcher.Close()
	}
}

// count returns the number of rules.
func (r *ruleSource) count() int {
	if r == nil {
		return 0
	}
	return len(r.live.Set().Rules())
}

// doubts returns the warnings about the rules at the start.
func (s *server) doubts() diag.List {
	if s.rules == nil {
		return nil
	}
	set := s.rules.live.Set()
	return slices.Concat(set.Warnings(), s.unmet(set), s.doorWarnings.Of(set))
}

// doorsOf returns the doors that are open.
func doorsOf(l config.Listen) (doors []rules.Door) {
	if l.Check.Open() {
		doors = append(doors, rules.DoorForwardAuth, rules.DoorCheck)
	}
	if l.RESP.Open() {
		doors = append(doors, rules.DoorRESP)
	}
	if l.RLS.Open() {
		doors = append(doors, rules.DoorRLS)
	}
	return doors
}

// unmet returns warnings about what rules require and this gateway does not provide.
func (s *server) unmet(set *rules.Set) (doubts diag.List) {
	for _, n := range set.Needs() {
		var why string
		switch {
		case n.Field == "tls.client_cn":
			if s.config.TLS.ClientCA == "" {
				doubts.Add(diag.Problem{
					Pos: diag.Pos{File: set.Files()[0]}, Severity: diag.Warning,
					Message: "`" + n.Value + "` is read from client certificates, and none is asked for: it counts as missing",
					Hint:    "name the authorities of your clients in `tls.client_ca`",
				})
			}
			continue
		case n.Field == "defer":
			if why = s.unmetDefer(n.Value); why == "" {
				continue
			}
		case n.Field != "consistency" && n.Field != "on_partition":
			continue
		case n.Value == "split":
			if s.shared != nil || set.Instances() > 0 {
				continue
			}
			why = "there is no Redis to count instances in, and the rules do not say `instances`: this one has the whole limit"
		case s.shared == nil:
			why = "it says how a fleet shares counters, and those of this process are its own"
		case n.Field == "consistency":
			continue
		default:
			if why = s.unmetPartition(set, n.Rule); why == "" {
				continue
			}
		}
		doubts.Add(diag.Problem{
			Pos: diag.Pos{File: set.Files()[0]}, Severity: diag.Warning,
			Message: "`" + n.Field + "` of the rule `" + n.Rule + "` does nothing here: " + why,
		})
	}
	return doubts
}

// unmetPartition returns why on_partition of a rule has no effect here; "" if it has.
func (s *server) unmetPartition(set *rules.Set, rule string) string {
	if len(s.config.Store.Redis.Regions) == 0 {
		return "it is about fleets in several regions, and there are no `store.regions`"
	}
	if h, ok := set.Handling(rule); ok && h.Consistency != tidegate.Eventual.String() {
		return "regions share limits with `consistency: eventual`; each has the whole limit of this one"
	}
	return ""
}
