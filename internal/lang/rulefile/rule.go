package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// rules reads the rules of one file, and reports whether it has the field `rules`.
func (d *decoder) rules(root object) bool {
	n := root.get("rules")
	if n == nil {
		return root.has("rules")
	}
	if n.Kind == yamltree.List && len(n.Items) == 0 {
		d.warn(n.Pos, "there are no rules, so nothing is limited", "write one, such as `- { name: api, per: ip, limits: 100/minute }`")
		return true
	}
	for _, item := range d.items(n, "`rules`", "write a list with a dash before each rule: "+diag.Quote(rulePlace.example)) {
		d.rule(item)
	}
	return true
}

func (d *decoder) rule(n *yamltree.Node) {
	o, ok := d.open(n, &rulePlace)
	if !ok {
		return
	}
	r := &Rule{Pos: n.Pos, Share: wholeShare, layer: d.at}
	r.Name = d.ruleName(o)
	if r.Name.Text != "" {
		o.at = r.Name.Pos // missing fields are reported there
	}
	if o.has("waive") {
		d.waive(o, r.Name.Text, extentOf(n))
	}
	sc := d.match(o)
	r.Match = sc.patterns
	r.When = d.conditions(o, "when", sc)
	r.Unless = d.conditions(o, "unless", sc)
	if n := o.get("respond"); n != nil {
		r.Respond = d.respond(n, o.pos("respond"))
	}
	p := d.policies(o, d.fallback)
	r.OnStoreFailure, r.OnFull, r.Consistency, r.OnPartition = p.onStoreFailure, p.onFull, p.consistency, p.onPartition
	r.Layers = p.layers
	c := modes[r.Consistency.Text]
	d.mayBucket = c == tidegate.Leased || c == tidegate.Split
	d.mode(o, r)
	r.InsteadOf = d.names(o, "instead_of", "write the rule that this one replaces: `instead_of: api`")
	if o.has("deny") {
		d.denyRule(o, r)
	} else {
		d.limitRule(o, r, sc)
	}
	d.put(r, o)
}

func (d *decoder) ruleName(o object) Word {
	const hint = "name it: the counters belong to the name, as in `name: api`"
	n := d.need(o, "name", "a rule", hint)
	if n == nil {
		return Word{}
	}
	text, ok := d.text(n, "`name`", hint)
	if !ok {
		return Word{}
	}
	if strings.Trim(text, nameLetters+".") != "" || len(text) > 64 {
		d.fail(n.Pos, diag.Quote(text)+" cannot be the name of a rule", "use up to 64 letters, digits, `.`, `-` and `_`, such as `sign-ups`")
		return Word{}
	}
	d.define("rule "+diag.Quote(text), n.Pos, d.replaces(o), "give one of the two another name: the counters belong to the name")
	return Word{text, n.Pos}
}

// names reads the field word of o, which is one name or a list of names.
func (d *decoder) names(o object, word, hint string) []Word {
	n := o.get(word)
	if n == nil {
		return nil
	}
	var all []Word
	seen := make(map[string]bool)
	for _, item := range d.oneOrMore(n, diag.Quote(word), hint) {
		text, ok := d.text(item, diag.Quote(word), hint)
		if !ok {
			continue
		}
		if seen[text] {
			d.fail(item.Pos, diag.Quote(text)+" is in the list twice", "remove one of them")
			continue
		}
		seen[text] = true
		all = append(all, Word{text, item.Pos})
	}
	return all
}

// denies are the fields that a rule with `deny` may have: it counts nothing.
var denies = []string{"name", "match", "when", "unless", "deny", "respond", "mode", "waive", "replace"}

func (d *decoder) denyRule(o object, r *Rule) {
	r.Deny = true
	if n := o.get("deny"); n != nil {
		if text, ok := d.text(n, "`deny`", "write `deny: true`"); ok && text != "true" {
			d.fail(n.Pos, "`deny` cannot be "+diag.Quote(text), "write `deny: true`, or remove the field")
		}
	}
	if slices.Contains(o.meant, "deny") {
		return // the field is misspelt, so the rule may not deny
	}
	for _, word := range rulePlace.words {
		if _, ok := o.field(word); ok && !slices.Contains(denies, word) {
			d.fail(o.key(word), "a rule that denies counts nothing, so it has no "+diag.Quote(word), "take out "+diag.Quote(word)+", or `deny`; for both write two rules")
		}
	}
}

// limitRule reads what rules have that do not deny.
func (d *decoder) limitRule(o object, r *Rule, sc scope) {
	d.per(o, r, sc)
	r.Terms = d.terms(o, sc)
	r.Tier = d.tier(o, sc)
	if o.has("limits") {
		r.LimitsPos = o.key("limits")
	}
	r.Count = d.count(o)
	r.Defer = d.deferred(o, r)
	r.SetAside = d.setAside(o)
	r.Shed = d.shed(o)
	if n := o.get("block"); n != nil {
		r.Block, _ = d.duration(n, "`block`", tidegate.MaxPeriod, "15m")
		r.BlockPos = n.Pos
	}
	branches, expired := d.branches(o, r, sc)
	if !o.has("limits") && !o.has("quota") && !o.has("concurrency") && !o.has("tier") {
		hint := "write `limits: 100/minute`, or `quota:`, `concurrency:` or `deny: true`"
		if o.has("for") {
			hint = "write what holds for all others as well: `limits: unlimited` or `limits: 100/minute`"
		}
		d.fail(o.at, "this rule limits nothing", hint)
		return
	}
	if o.has("tier") {
		for _, t := range d.file.Tiers {
			branches = append(branches, t.object)
		}
	}
	d.companions(o, append(branches, o))
	expired = d.expandRule(r, expired)
	r.settle(expired)
	d.checkRule(r, expired)
	d.checkDefer(o, r)
	d.checkSetAside(r)
	d.checkTiers(r)
}

// terms reads the fields that a rule, a branch and a tier can all have.
func (d *decoder) terms(o object, sc scope) Terms {
	return Terms{
		Limits:      d.limits(o, sc),
		Quota:       d.quota(o),
		Concurrency: d.concurrency(o),
		Over:        d.over(o),
		Cost:        d.cost(o, sc),
		Queue:       d.queue(o),
	}
}

func (d *decoder) per(o object, r *Rule, sc scope) {
	r.PerPos = o.pos("per")
	const hint = "write `per: ip` or another name of `identify`, or `per: everyone` for one counter"
	if !o.has("per") {
		d.fail(o.at, "this rule does not say who is counted", hint)
	}
	skip := false
	for _, w := range d.names(o, "per", hint) {
		id, ok := d.known(&yamltree.Node{Kind: yamltree.Scalar, Value: w.Text, Pos: w.Pos}, "`per`")
		if !ok || !d.findable(w.Pos, id, sc) {
			continue
		}
		r.Per = append(r.Per, w)
		skip = skip || len(id.Sources) > 0 && !slices.ContainsFunc(id.Sources, func(s Source) bool { return s.Kind != SourceDescriptor })
	}
	for _, w := range r.Per {
		if w.Text == "everyone" && len(r.Per) > 1 {
			d.fail(w.Pos, "`everyone` beside another name says nothing", "remove `everyone`")
		}
	}
	if skip {
		r.Missing = MissingSkip
	}
	d.missing(o, r)
}

func (d *decoder) missing(o object, r *Rule) {
	n := o.get("missing")
	if n == nil {
		return
	}
	text, ok := d.oneOf(n, "`missing`", "ip", "skip", "refuse")
	if !ok {
		return
	}
	r.HasMissing = true
	r.Missing = map[string]Missing{"ip": MissingIP, "skip": MissingSkip, "refuse": MissingRefuse}[text]
	if len(r.Per) > 0 && !slices.ContainsFunc(r.Per, func(w Word) bool { return d.canMiss(w.Text) }) {
		d.warn(o.key("missing"), "`missing` never applies, since every request has "+diag.Quote(r.Per[0].Text), "remove `missing`")
	}
}

// canMiss reports whether a request may lack the identity.
func (d *decoder) canMiss(name string) bool {
	id, _ := d.file.Identity(name)
	return len(id.Sources) == 0 || !id.Sources[len(id.Sources)-1].always()
}
