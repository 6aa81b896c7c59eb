package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// Why is the explanation of a refusal: what its slip says, and what the rules in force then said.
type Why struct {
	Refusal RefusalOf `json:"refusal"`
	// Text says it in a sentence.
	Text string `json:"text"`
	// Set is the rules that were in force; nil if they are no longer known, and Gone says why.
	Set  *PastSet `json:"set,omitempty"`
	Gone string   `json:"gone,omitempty"`
	// Rule is what they said about the refused caller; nil if that is unknown.
	Rule *WhyRule `json:"rule,omitempty"`
	// Now is the state of the same key under the rules in force now; empty if that is unknown.
	Now []Counter `json:"now,omitempty"`
}

// RefusalOf is the content of a slip.
type RefusalOf struct {
	At   time.Time `json:"at"`
	Node string    `json:"node"`
	// Rules is the beginning of the hash of the rules.
	Rules string `json:"rules,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Limit string `json:"limit,omitempty"`
	// Subject is who was counted. Values that may be secret are hashes.
	Subject    []offenders.Part `json:"subject,omitempty"`
	Remaining  int64            `json:"remaining"`
	Capacity   int64            `json:"capacity"`
	RetryAfter float64          `json:"retry_after_seconds,omitempty"`
	Never      bool             `json:"never,omitempty"`   // retrying would not have helped
	Denied     bool             `json:"denied,omitempty"`  // by an access rule or a ban
	Blocked    bool             `json:"blocked,omitempty"` // it was over the limit before, and blocked for a time
	Shed       bool             `json:"shed,omitempty"`    // there was not enough capacity for all requests
	Unsure     bool             `json:"unsure,omitempty"`  // the store could not tell
	Local      bool             `json:"local,omitempty"`   // the instance decided by itself, without the store
}

// WhyRule is a rule as it was.
type WhyRule struct {
	Name  string `json:"name"`
	Place string `json:"place"` // file:line:col
	Text  string `json:"text"`  // as it was written
	Mode  string `json:"mode,omitempty"`
	Per   string `json:"per,omitempty"`
	// Branch, Tier and Row are those of the refused caller.
	Branch string   `json:"branch,omitempty"`
	Tier   string   `json:"tier,omitempty"`
	Row    string   `json:"row,omitempty"`
	Limits []string `json:"limits,omitempty"` // that applied to the caller
}

// why opens a slip.
func (s *server) why(r *http.Request) (any, operation, error) {
	var q struct {
		Slip string `json:"slip"`
	}
	d := operation{action: "why"}
	if err := decode(r, &q); err != nil {
		return nil, d, err
	}
	switch {
	case s.OpenSlip == nil:
		return nil, d, problemf(http.StatusNotFound, "There are no slips here.")
	case !strings.HasPrefix(strings.TrimSpace(q.Slip), slip.Prefix):
		return nil, d, problemf(http.StatusBadRequest, "This is not a slip: one begins with %s, and is the value of Refusal-Slip in the answer to a refused request.", slip.Prefix)
	}
	is, err := s.OpenSlip(q.Slip)
	if err != nil {
		return nil, d, problemf(http.StatusUnprocessableEntity, "%s. Instances share a key by slips.key_file; without it, only the process that sealed a slip opens it, and only until it ends.", sentence(err.Error()))
	}
	w := Why{Refusal: s.refusalOf(&is)}
	d.what = []any{"rule", is.Rule, "as", shownAs(w.Refusal.Subject), "at", is.At.Format(time.RFC3339), "node", is.Node}
	w.Text = w.Refusal.text()
	s.explainThen(r.Context(), &w)
	if as, known := asOf(w.Refusal.Subject); known && s.Rules != nil && s.Store != nil && is.Rule != "" {
		w.Now = s.countersUnder(r.Context(), s.Rules.Live(), Question{Rule: is.Rule, As: as})
	}
	return w, d, nil
}

// sentence returns text with a capital at its beginning.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

func (s *server) refusalOf(is *slip.Slip) RefusalOf {
	r := RefusalOf{
		At: is.At, Node: shown(is.Node, maxWord), Rules: is.Rules, Rule: is.Rule, Limit: is.Limit,
		Remaining: is.Remaining, Capacity: is.Capacity, RetryAfter: is.RetryAfter.Seconds(),
		Never: is.Flags&slip.Never != 0, Denied: is.Flags&slip.Denied != 0, Blocked: is.Flags&slip.Blocked != 0,
		Shed:   is.Flags&slip.Shed != 0,
		Unsure: is.Flags&slip.Unsure != 0, Local: is.Flags&slip.Local != 0,
	}
	if is.Scope != "" && s.SubjectOf != nil {
		r.Subject = s.SubjectOf(&tidegate.Limit{Spec: tidegate.Spec{Name: is.Rule, Scope: is.Scope}}, is.Key)
	}
	return r
}

// text returns a sentence that says what happened.
func (r *RefusalOf) text() string {
	who := cmp.Or(whoText(r.Subject), "A request")
	by := "by no rule"
	if r.Rule != "" {
		by = "by the rule " + r.Rule
	}
	if r.Limit != "" {
		by += " (" + r.Limit + ")"
	}
	text := fmt.Sprintf("%s was refused %s at %s on %s: %s.", who, by, r.At.Format("2006-01-02 15:04:05.000 UTC"), cmp.Or(r.Node, "an instance without a name"), r.because())
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" The same request would have passed %s later.", time.Duration(r.RetryAfter*float64(time.Second)).Round(time.Millisecond))
	}
	if r.Local {
		text += " The store did not answer then, and the instance decided by its own counters."
	}
	return text
}

func (r *RefusalOf) because() string {
	switch {
	case r.Unsure:
		return "the store could not tell where they stood, and the rule refuses then"
	case r.Denied && r.Rule == rules.BanRule:
		return "they were banned"
	case r.Denied:
		return "the rule does not allow such requests, or they were banned from it"
	case r.Shed:
		return "there was not the capacity for all requests, and theirs was among those that were shed"
	case r.Blocked:
		return "they had been over the limit, and were kept out for a time"
	case r.Never:
		return "the request cost more than the limit can ever admit"
	}
	return fmt.Sprintf("%d of %d were left, and it needed more", r.Remaining, r.Capacity)
}

func whoText(subject []offenders.Part) string {
	var parts []string
	for _, p := range subject {
		switch {
		case p.Hashed:
			parts = append(parts, p.Name+"=#"+p.Value)
		case p.Value != "":
			parts = append(parts, p.Name+"="+p.Value)
		default:
			parts = append(parts, p.Name)
		}
	}
	return strings.Join(parts, " ")
}

func shownAs(subject []offenders.Part) map[string]string {
	as := make(map[string]string)
	for _, p := range subject {
		as[p.Name] = p.Value
		if p.Hashed {
			as[p.Name] = "#" + p.Value
		}
	}
	return as
}

// asOf returns the identities of a subject, and whether all of them are known.
func asOf(subject []offenders.Part) (as map[string]string, known bool) {
	as = make(map[string]string)
	for _, p := range subject {
		if p.Hashed {
			return nil, false
		}
		name, _, _ := strings.Cut(p.Name, "/") // who/cookie session: the identity and one of its sources
		as[name] = p.Value
	}
	return as, len(as) > 0
}

// explainThen finds the rules that were in force, and what they said.
func (s *server) explainThen(ctx context.Context, w *Why) {
	hash := w.Refusal.Rules
	if s.Rules == nil {
		w.Gone = "there are no rules any more"
		return
	}
	st := s.Rules.Status()
	bundle, err := s.bundleOf(ctx, hash)
	set := s.Rules.Live().Set()
	if st.Hash == "" || hash == "" || !strings.HasPrefix(st.Hash, hash) { // other rules are in force now
		switch {
		case errors.Is(err, source.ErrNoRevision):
			w.Gone = fmt.Sprintf("the rules %s that were in force are not in the history any more, which has the last %d sets", hash, source.Kept)
			return
		case err != nil:
			w.Gone = "the history of the rules cannot be read: " + err.Error()
			return
		case bundle == nil && hash != "":
			w.Gone = "no history of the rules is kept here"
			return
		case bundle != nil && s.CompileFiles != nil:
			if set, err = s.CompileFiles(proposalOf(bundle)); err != nil {
				w.Gone = "the rules that were in force do not load any more: " + err.Error()
				return
			}
		}
	}
	past := PastSet{Hash: st.Hash, InForce: true, Since: st.LoadedAt.UTC()}
	if bundle != nil {
		past = s.pastSet(bundle.Edition)
	}
	w.Set = &past
	w.Rule = ruleThen(set, bundle, &w.Refusal)
}

// bundleOf returns the files of the set whose hash begins with hash; nil if no sets are kept, or if
// hash is "".
func (s *server) bundleOf(ctx context.Context, hash string) (*source.Bundle, error) {
	if s.History == nil || hash == "" {
		return nil, nil
	}
	return s.History.Get(ctx, hash)
}

func proposalOf(b *source.Bundle) *Proposal {
	p := &Proposal{Main: b.Main, Over: b.Over, Files: make(map[string]string, len(b.Files))}
	for name, text := range b.Files {
		p.Files[name] = string(text)
	}
	return p
}

// ruleThen returns what a set says about the refused caller. The result does not identify the
// caller.
func ruleThen(set *rules.Set, bundle *source.Bundle, r *RefusalOf) *WhyRule {
	as, _ := asOf(r.Subject)
	var found *rules.ExplainedRule
	for _, request := range samples(set, r.Rule, as) {
		e := set.Explain(request)
		for i := range e.Rules {
			if x := &e.Rules[i]; x.Name == r.Rule && (found == nil || x.Applies && !found.Applies) {
				found = x
			}
		}
	}
	if found == nil {
		return domainRule(set, bundle, r.Rule)
	}
	w := &WhyRule{
		Name: found.Name, Place: strings.TrimPrefix(found.Place, "new rules: "), Mode: found.Mode, Per: found.Per,
		Branch: found.Branch, Tier: found.Tier, Row: found.Row,
	}
	for _, c := range found.Checks {
		text := c.Limit
		if c.Role != "decides" {
			text += " (" + c.Role + ")"
		}
		w.Limits = append(w.Limits, text)
	}
	if bundle != nil {
		w.Text = ruleText(bundle.Files, w.Place)
	}
	return w
}

// domainRule returns a rule of a domain of Envoy; nil if there is none of that name.
func domainRule(set *rules.Set, bundle *source.Bundle, name string) *WhyRule {
	domains := set.Domains()
	for _, domain := range domains.Domains() {
		for _, rule := range domains.Domain(domain).Rules() {
			if rule.Path != name {
				continue
			}
			w := &WhyRule{Name: name, Place: strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", rule.Pos.File, rule.Pos.Line, rule.Pos.Col), "new rules: "), Mode: "enforce"}
			if rule.Shadow {
				w.Mode = "shadow"
			}
			for _, l := range rule.Limits {
				w.Limits = append(w.Limits, strings.TrimPrefix(l.String(), l.Name+": "))
			}
			if bundle != nil {
				w.Text = ruleText(bundle.Files, w.Place)
			}
			return w
		}
	}
	return nil
}
