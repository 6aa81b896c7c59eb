package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Explanation is how a Set sees a request: its identities, and for every rule whether it applies
// and why not.
type Explanation struct {
	Method string `json:"method"`
	Host   string `json:"host"`
	Path   string `json:"path"` // as it is matched
	// AlsoReadAs are other paths that a server may read the path as: rules also apply to them.
	AlsoReadAs []string        `json:"also_read_as,omitempty"`
	Identities []FoundIdentity `json:"identities"`
	// Class is how important the request is, where the rules have classes. Where it can be read in
	// several ways, it is the least important of them.
	Class string `json:"class,omitempty"`
	// Shed says when requests are shed by the `shed` of the whole file.
	Shed string `json:"shed,omitempty"`
	// Exempt is the position of the entry of exempt that exempts the request.
	Exempt string `json:"exempt,omitempty"`
	// Ban refuses the request, whatever the rules say of it; nil means that none does.
	Ban   *Measure        `json:"ban,omitempty"`
	Rules []ExplainedRule `json:"rules"`
}

// FoundIdentity is one identity of the request.
type FoundIdentity struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Source  string `json:"source,omitempty"` // where it was found
	Missing bool   `json:"missing,omitempty"`
	Note    string `json:"note,omitempty"` // why it is missing, unless that is obvious
}

// ExplainedRule is how a rule applies to a request.
type ExplainedRule struct {
	Name    string `json:"name"`
	Place   string `json:"place"` // file:line:col
	Applies bool   `json:"applies"`
	// Why it does not apply, or refuses without counting.
	Why string `json:"why,omitempty"`
	// ReadAs is the reading of the path that this is about, if there are several; see
	// Explanation.AlsoReadAs.
	ReadAs string `json:"read_as,omitempty"`
	// Pattern that matched; "" where the rule has none, or none matches.
	Pattern string `json:"pattern,omitempty"`
	// Mode is enforce, enforce 25%, shadow or disabled.
	Mode string `json:"mode"`
	// Decides is false if the rule is only tried and refuses nothing.
	Decides bool `json:"decides"`
	// Branch is the position of the branch of `for` that the request takes; "" means the rule's own
	// terms. Reason is the branch's own explanation.
	Branch string `json:"branch,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Override is the override that replaces the limits of the rule; nil means none.
	Override *Measure `json:"override,omitempty"`
	// Tier is the one that the request has, Row the values of the table's row that it falls
	// into; "else" where it falls into none.
	Tier string `json:"tier,omitempty"`
	Row  string `json:"row,omitempty"`
	// Was is the tier or row that the request had under other rules, with its limits, for
	// comparisons.
	Was string `json:"was,omitempty"`
	// Per is what the rule counts by, Scope which sources it was found in, Key the value.
	Per   string `json:"per,omitempty"`
	Scope string `json:"scope,omitempty"`
	Key   string `json:"key,omitempty"`
	// Subject is what Scope and Key say, part by part.
	Subject []SubjectPart `json:"subject,omitempty"`
	// Unlimited: the rule applies but has no limits.
	Unlimited bool `json:"unlimited,omitempty"`
	// Defer says how refused requests are kept for later; "" means that they are not.
	Defer string `json:"defer,omitempty"`
	// Shed says when the rule sheds requests.
	Shed string `json:"shed,omitempty"`
	// Elastic says which signal decides and its current value.
	Elastic string           `json:"elastic,omitempty"`
	Checks  []ExplainedCheck `json:"checks,omitempty"`
}

// SubjectPart is one of the values that a rule counts by.
type SubjectPart struct {
	Name  string `json:"name"`  // user, or who/cookie session where an identity has several sources
	Value string `json:"value"` // as it was found; "" for everyone
}

// ExplainedCheck is one check that the request is held to by a rule.
type ExplainedCheck struct {
	Role      string `json:"role"`  // decides, marks, tries, blocks, sheds
	Limit     string `json:"limit"` // 100/1m0s sub_windows
	Algorithm string `json:"algorithm"`
	Scope     string `json:"scope,omitempty"`
	Key       string `json:"key"`
	// Subject is what Scope and Key say, part by part.
	Subject  []SubjectPart `json:"subject,omitempty"`
	Cost     int64         `json:"cost"`
	Estimate bool          `json:"estimate,omitempty"` // the true cost comes later
	Advisory bool          `json:"advisory,omitempty"`
	MaxWait  string        `json:"max_wait,omitempty"`
	// Leaves is how many events must remain for more important classes.
	Leaves int64 `json:"leaves,omitempty"`
	// MaxOver is for how long requests may pass above the limit; then it decides, until requests
	// have stayed below it for as long.
	MaxOver string `json:"max_over,omitempty"`
	// Consistency is how a fleet shares the counter, where the rule says leased, eventual or split:
	// that, or strict if the limit does not support it. Shared says what it means, or why it is
	// strict.
	Consistency string `json:"consistency,omitempty"`
	Shared      string `json:"shared,omitempty"`
	// Until is set for counters of earlier rules with another algorithm or period: until then
	// requests are held to what was used there.
	Until *time.Time `json:"until,omitempty"`
	// Check is what Match returns.
	Check tidegate.Check `json:"-"`
}

// Explain returns what Match would do with a request, and why. It charges nothing.
func (s *Set) Explain(r *tidegate.Request) Explanation { return s.state(r).explain("") }

// explain explains all rules or, unless only is "", just the rule of that name.
func (st *state) explain(only string) Explanation {
	r := st.request
	st.explains = true
	e := Explanation{Method: r.Method, Host: plainHost(r.Host), Path: st.readings[0].Path()}
	class := int32(-1)
	for way := range st.readings {
		st.turnTo(way)
		st.collect()
		found, exempt := st.explainReading(only)
		class = max(class, st.class)
		if ban := st.banned(); ban != nil && e.Ban == nil {
			e.Ban = ban.measure.clone()
		}
		if way == 0 {
			e.Identities, e.Rules, e.Exempt = st.foundIdentities(), found, exempt
			continue
		}
		if path := st.readings[way].Path(); path != e.Path && !slices.Contains(e.AlsoReadAs, path) {
			e.AlsoReadAs = append(e.AlsoReadAs, path)
		}
		if exempt == "" { // an exemption has to hold in all readings
			e.Exempt = ""
		}
		for i := range found {
			e.Rules[i].join(&found[i])
		}
	}
	e.Class = st.set.className(int(class))
	if st.set.shed != nil && e.Exempt == "" {
		e.Shed = st.set.shed.text()
	}
	st.done()
	return e
}

// explainReading explains the current reading of the path.
func (st *state) explainReading(only string) (found []ExplainedRule, exempt string) {
	s := st.set
	first := st.resolveAll()
	for i := range first {
		if h := &st.hits[i]; h.status == applies {
			exempt = place(s.entries[h.entry].exempt.Pos)
		}
	}
	found = []ExplainedRule{}
	if only == "" {
		found = make([]ExplainedRule, 0, len(s.rules))
	}
	next := first
	for i := len(s.entries) - len(s.rules); i < len(s.entries); i++ {
		wanted := only == "" || only == s.entries[i].rule.name
		if next < len(st.hits) && int(st.hits[next].entry) == i {
			if st.measures != nil {
				st.lookForBan(&st.hits[next])
			}
			if wanted {
				found = append(found, st.explainHit(&st.hits[next]))
			}
			next++
		} else if wanted {
			found = append(found, st.explainMissed(i))
		}
	}
	for i := range found {
		if len(st.readings) > 1 {
			found[i].ReadAs = st.readings[st.way].Path()
		}
	}
	return found, exempt
}

// join merges what the rule does in another reading of the path into x.
func (x *ExplainedRule) join(other *ExplainedRule) {
	switch {
	case !other.Applies:
	case !x.Applies:
		*x = *other
	default:
		for i := range other.Checks {
			x.joinCheck(&other.Checks[i])
		}
	}
}

// joinCheck adds a check of another reading, as matchEach does.
func (x *ExplainedRule) joinCheck(other *ExplainedCheck) {
	of := chargeOf(&other.Check)
	for i := range x.Checks {
		had := &x.Checks[i]
		joined := had.Check
		if chargeOf(&joined) != of || !joinCheck(&joined, &other.Check) {
			continue
		}
		from := had
		if joined.Limit != had.Check.Limit {
			from = other
		}
		made := explainCheck(joined)
		made.Subject, made.Until, made.Consistency, made.Shared = from.Subject, from.Until, from.Consistency, from.Shared
		*had = made
		return
	}
	x.Checks = append(x.Checks, *other)
}

func (st *state) foundIdentities() []FoundIdentity {
	all := make([]FoundIdentity, 0, len(st.set.ids.all))
	for _, id := range st.set.ids.all {
		if id.sources[0].kind == rulefile.SourceEveryone {
			continue
		}
		f := FoundIdentity{Name: strings.TrimSpace(id.name)}
		if v, ok := st.find(id, nil); ok {
			f.Value, f.Source = strings.Clone(v.text), id.sources[v.source].text
		} else {
			f.Missing, f.Note = true, st.whyMissing(id)
		}
		all = append(all, f)
	}
	return all
}

// explainHit explains a rule whose patterns match.
func (st *state) explainHit(h *hit) ExplainedRule {
	x := st.describe(h)
	r := st.set.entries[h.entry].rule
	x.Applies = h.status == applies || h.status == refuses
	x.Why = st.why(h)
	if !x.Applies {
		return x
	}
	x.Decides = !h.try
	if h.status == applies {
		x.Key = strings.Clone(h.key)
	}
	if h.status == applies && !r.deny {
		x.Per, x.Scope = r.subject.text(), r.subject.scopes[h.scope]
		x.Subject = r.subject.named(st, h)
		p, o := st.plan(h, r)
		st.explainPlan(&x, p)
		x.Defer = deferText(r.kept())
		if r.shed != nil {
			x.Shed = r.shed.text()
		}
		if o != nil {
			x.Override = o.measure.clone()
		}
		w := r.written()
		x.Tier, x.Row = w.TierOf(p.branch), w.RowOf(p.branch)
	}
	checks := st.append(nil, h)
	for _, c := range checks {
		made := explainCheck(c)
		made.Subject = x.Subject
		if p := st.predecessorOf(checks, c.Limit); p != nil {
			made.Until = &p.until
		} else {
			r.explainShared(&made, st.set.instances)
		}
		x.Checks = append(x.Checks, made)
	}
	return x
}

func (st *state) describe(h *hit) ExplainedRule {
	e := &st.set.entries[h.entry]
	x := ExplainedRule{Name: e.rule.name, Place: place(e.rule.pos), Mode: e.rule.modeText()}
	if len(e.patterns) > 0 {
		x.Pattern = e.patterns[h.pattern]
	}
	return x
}

func (st *state) explainPlan(x *ExplainedRule, p *plan) {
	x.Unlimited = p.unlimited
	if b := p.branch; b != nil && !b.Made {
		x.Branch, x.Reason = place(b.Pos), b.Reason
	} else if b != nil && b.Within.Line > 0 {
		x.Branch, x.Reason = place(b.Within), b.Reason
	}
	if p.elastic == nil {
		return
	}
	name := p.elastic.Signal.Text
	x.Elastic = name + " has no value, so the nominal limit decides"
	if st.set.config.Signals == nil {
		return
	}
	if v, ok := st.set.config.Signals.Signal(name); ok {
		word := "not below"
		room := st.set.hasRoom(p)
		if room {
			word = "below"
		}
		if room != (v < p.elastic.Below) { // see Steady
			word = "still " + word
		}
		x.Elastic = fmt.Sprintf("%s is %v, %s %v", name, v, word, p.elastic.Below)
	}
}

// deferText returns how refused requests are kept; "" if they are not.
func deferText(d *tidegate.Defer) string {
	switch {
	case d == nil:
		return ""
	case d.Stream != "":
		return fmt.Sprintf("appended to the stream %s, with bodies up to %d bytes", d.Stream, d.MaxBody)
	}
	return fmt.Sprintf("kept for %s at most, %d of them and %d of a key, with bodies up to %d bytes", d.Keep, d.Places, d.PerKey, d.MaxBody)
}

func explainCheck(c tidegate.Check) ExplainedCheck {
	c.Key = strings.Clone(c.Key)
	name := c.Limit.Name + ": "
	x := ExplainedCheck{
		Role: roleTexts[c.Limit.Terms.Role], Limit: strings.TrimPrefix(c.Limit.String(), name),
		Algorithm: c.Limit.Algorithm.String(), Scope: c.Limit.Scope, Key: c.Key,
		Cost: c.Cost, Leaves: c.Floor, Estimate: c.Estimate, Advisory: c.Advisory, Check: c,
	}
	if c.MaxWait > 0 {
		x.MaxWait = c.MaxWait.String()
	}
	if over := c.Limit.Terms.MaxOver; over > 0 {
		x.MaxOver = over.String()
	}
	return x
}

var roleTexts = map[tidegate.Role]string{
	tidegate.Decides: "decides", tidegate.Marks: "marks", tidegate.Tries: "tries", tidegate.Blocks: "blocks", tidegate.Sheds: "sheds",
}

func (r *rule) modeText() string {
	switch {
	case r.mode == rulefile.Shadow:
		return "shadow"
	case r.mode == rulefile.Disabled:
		return "disabled"
	case r.share < wholeShare:
		return "enforce " + strconv.FormatFloat(float64(r.share)/100, 'f', -1, 64) + "%"
	}
	return "enforce"
}
