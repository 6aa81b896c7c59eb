package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules"
)

// Overview is what an operator looks at first.
type Overview struct {
	At      time.Time `json:"at"`
	Verdict Verdict   `json:"verdict"`
	// Rules is how many there are, Busiest those that refuse the largest share, at most five.
	Rules   int        `json:"rules"`
	Busiest []RuleLoad `json:"busiest"`
	Traffic Traffic    `json:"traffic"`
	// Nodes are the instances, Unknown says why they cannot be listed.
	Nodes    []NodeState `json:"nodes"`
	Unknown  string      `json:"unknown,omitempty"`
	Shared   bool        `json:"shared"` // counters are in Redis
	Measures []Ordered   `json:"measures"`
	// Identities are the names by which the rules know callers.
	Identities []string `json:"identities"`
	// Gateway is the address that clients ask; "" if there is none.
	Gateway string `json:"gateway,omitempty"`
}

// Traffic is how many requests were admitted and refused, step by step, the oldest first.
type Traffic struct {
	From     time.Time `json:"from"`
	Step     int       `json:"step_seconds"`
	Admitted []uint64  `json:"admitted"`
	Refused  []uint64  `json:"refused"`
	// Nodes is how many instances have answered, Of how many there are; Missing says why others have not.
	Nodes   int      `json:"nodes"`
	Of      int      `json:"of"`
	Missing []string `json:"missing,omitempty"`
}

// RuleLoad is what a rule has decided in the last fifteen minutes.
type RuleLoad struct {
	Rule     string  `json:"rule"`
	Admitted uint64  `json:"admitted"`
	Refused  uint64  `json:"refused"`
	Share    float64 `json:"share"` // refused of all
	// WouldRefuse is what a rule in shadow mode, or a candidate, would have refused.
	WouldRefuse uint64 `json:"would_refuse,omitempty"`
}

// NodeState is an instance and which rules it applies.
type NodeState struct {
	ID       string    `json:"id,omitempty"`
	Name     string    `json:"name"`
	Self     bool      `json:"self,omitempty"`
	Version  string    `json:"version,omitempty"`
	Revision string    `json:"revision,omitempty"` // of its rules, as their source calls it, or how their hash begins
	Since    time.Time `json:"since,omitzero"`     // when these were put in force
	Store    string    `json:"store"`              // how it finds the store: ok, partial, degraded, recovering, unknown
	StoreFor float64   `json:"store_for_seconds,omitempty"`
	// Problem is what is wrong with it; "" if nothing is known.
	Problem string `json:"problem,omitempty"`
}

// busiest is how many rules an overview has.
const busiest = 5

// liveStep is how many seconds a step of live views has.
const liveStep = 5

// Moment is everything that live pages show, at one time: it is found once, and shown to all.
type Moment struct {
	overview Overview
	series   Series
}

// Moment finds out how things are now. It asks the other instances, which may take some seconds.
func (a *API) Moment(ctx context.Context) *Moment {
	s := a.server
	m := &Moment{overview: Overview{Gateway: s.Gateway, At: time.Now().UTC(), Busiest: []RuleLoad{}, Nodes: []NodeState{}, Measures: []Ordered{}, Identities: []string{}}}
	o := &m.overview
	if s.Series != nil {
		m.series, _ = s.fleetSeries(ctx, SeriesQuery{Step: liveStep}) // this question is short
	}
	whole := m.series.about(SeriesQuery{Rule: AllRequests})
	o.Traffic = trafficOf(&whole)
	loads := slices.DeleteFunc(loadsOf(&m.series), func(l RuleLoad) bool { return l.Rule == AllRequests || l.Rule == rules.BanRule }) // a ban is an order, not a rule
	slices.SortStableFunc(loads, func(a, b RuleLoad) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Refused, a.Refused), strings.Compare(a.Rule, b.Rule))
	})
	o.Busiest = append(o.Busiest, loads[:min(len(loads), busiest)]...)
	if s.Rules != nil {
		set := s.Rules.Live().Set()
		o.Rules, o.Identities = len(set.Rules()), append(o.Identities, set.Identities()...)
	}
	o.Measures = s.listMeasures("")
	o.Shared = s.Fleet != nil
	var status RulesStatus
	if s.InForce != nil {
		status = CombineReports(s.askInForce(ctx), time.Now())
	}
	var fleet Fleet
	if s.Fleet != nil {
		var err error
		if fleet, err = s.Fleet(ctx); err != nil {
			o.Unknown = err.Error()
		}
	}
	o.Nodes = nodesOf(&status, &fleet, time.Now())
	o.Verdict = s.verdict(&status, &fleet, o.Unknown)
	return m
}

// Overview returns what the first page shows.
func (m *Moment) Overview() Overview { return m.overview }

// RuleMoment is what the page of a rule shows.
type RuleMoment struct {
	At      time.Time `json:"at"`
	Load    RuleLoad  `json:"load"`
	Traffic Traffic   `json:"traffic"`
	// WouldRefuse is what the rule in shadow mode, or its candidate, would have refused, step by step.
	WouldRefuse []uint64 `json:"would_refuse"`
}

// Rule returns what the page of a rule shows.
func (m *Moment) Rule(name string) RuleMoment {
	one := m.series
	one.Lines = slices.DeleteFunc(slices.Clone(one.Lines), func(l Line) bool { return l.Rule != name })
	is := RuleMoment{At: m.overview.At, Load: RuleLoad{Rule: name}, Traffic: trafficOf(&one), WouldRefuse: []uint64{}}
	for _, l := range loadsOf(&one) {
		is.Load = l
	}
	is.WouldRefuse = sumLines(&one, wouldRefuse)
	return is
}

// admits reports whether an outcome, as metrics name it, let the request pass.
func admits(outcome string) bool {
	return outcome == "ok" || outcome == "waited" || outcome == "soft" || outcome == "failed_open"
}

func refuses(outcome string) bool {
	return outcome == "refused" || outcome == "denied" || outcome == "failed_closed"
}

func wouldRefuse(outcome string) bool { return outcome == "shadow_refused" }

func trafficOf(s *Series) Traffic {
	return Traffic{
		From: s.From, Step: max(s.Step, 1), Admitted: sumLines(s, admits), Refused: sumLines(s, refuses),
		Nodes: len(s.Nodes), Of: len(s.Nodes) + len(s.Missing), Missing: s.Missing,
	}
}

// sumLines adds up the lines of some outcomes, step by step.
func sumLines(s *Series, of func(outcome string) bool) []uint64 {
	sum := make([]uint64, s.length())
	for _, l := range s.Lines {
		if !of(l.Outcome) {
			continue
		}
		for i, n := range l.Counts {
			sum[i] += uint64(n)
		}
	}
	return sum
}

// loadsOf returns what each rule has decided.
func loadsOf(s *Series) (all []RuleLoad) {
	at := make(map[string]int)
	for _, l := range s.Lines {
		i, known := at[l.Rule]
		if !known {
			i = len(all)
			at[l.Rule] = i
			all = append(all, RuleLoad{Rule: l.Rule})
		}
		sum := uint64(sumOf(l.Counts))
		switch {
		case admits(l.Outcome):
			all[i].Admitted += sum
		case refuses(l.Outcome):
			all[i].Refused += sum
		case wouldRefuse(l.Outcome):
			all[i].WouldRefuse += sum
		}
	}
	for i := range all {
		if n := all[i].Admitted + all[i].Refused; n > 0 {
			all[i].Share = float64(all[i].Refused) / float64(n)
		}
	}
	return slices.DeleteFunc(all, func(l RuleLoad) bool { return l.Admitted+l.Refused+l.WouldRefuse == 0 })
}
