package rules

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// plan is what a request is held to by a rule, or by the branch of its `for` that it takes.
type plan struct {
	branch  *rulefile.Branch // nil means the rule itself
	conds   *whenUnless      // of the branch
	cost    *cost
	elastic *rulefile.Elastic
	// unlimited: no limit decides, though a candidate may count.
	unlimited bool
	// unblocked: the limits that start a block are lifted, and with them the block.
	unblocked bool
	// By scope: the limits where the rule decides, and where it only tries. One of them is nil if
	// no request needs it.
	decides, tries [][]item
	// blocks are the limits that refuse callers after a refusal, by scope, if the rule decides. A
	// nil one blocks nobody; neither does a nil slice.
	blocks []*tidegate.Limit
}

// planner makes the plans of one rule.
type planner struct {
	*compiler
	*limiter
	written *rulefile.Rule
	scopes  []string
	decides bool // the rule decides some requests
	tries   bool // and only tries for some
}

// plans makes the rule's own plan and one for each branch.
func (p *planner) plans() []plan {
	all := make([]plan, 1, 1+len(p.written.For))
	all[0] = p.plan(p.written.Terms)
	for i := range p.written.For {
		b := &p.written.For[i]
		made := p.plan(p.written.Under(b))
		made.branch, made.conds = b, p.whenUnless(b.When, b.Unless)
		all = append(all, made)
	}
	return all
}

func (p *planner) plan(t rulefile.Terms) plan {
	made := plan{conds: unconditional, cost: p.cost(t.Cost)}
	made.unlimited = (t.Limits == nil || t.Limits.Unlimited) && t.Quota == nil && t.Concurrency == nil
	made.unblocked = t.Limits != nil && t.Limits.Unlimited
	var queue tidegate.Queue
	if t.Queue != nil {
		queue = tidegate.Queue{Places: t.Queue.Places, MaxWait: t.Queue.MaxWait, DropOldest: t.Queue.DropOldest}
	}
	if t.Over != nil {
		made.elastic = t.Over.Elastic
	}
	for _, scope := range p.scopes {
		if p.tooMany(t) {
			return made
		}
		if p.decides {
			var block *tidegate.Limit
			if !made.unblocked {
				block = p.must(p.limiter.block(scope))
			}
			as := role{is: tidegate.Decides, block: block, settle: made.cost.settle, queue: queue}
			items := p.items(t, scope, as)
			made.decides = append(made.decides, items)
			if block != nil {
				made.blocks = append(made.blocks, p.must(p.limiter.blockTelling(scope, told(items))))
			}
		}
		if p.tries {
			as := role{is: tidegate.Tries, settle: made.cost.settle}
			made.tries = append(made.tries, p.items(t, scope, as))
		}
	}
	return made
}

// told returns the limit that clients are told about; nil if there is none.
func told(items []item) *tidegate.Limit {
	for i := range items {
		h := &items[i].held
		if items[i].vary != nil {
			h = items[i].vary.otherwise
		}
		switch {
		case h.slot || h.tries:
		case h.nominal != nil:
			return h.nominal
		default:
			return h.limit
		}
	}
	return nil
}

// tooMany counts the limits of t for one scope, and reports whether the file has made too many by
// then. It adds the error only once.
func (p *planner) tooMany(t rulefile.Terms) bool {
	before := p.compiler.limits
	p.compiler.limits++
	if t.Limits != nil {
		p.compiler.limits += len(t.Limits.All)
	}
	if before <= maxLimits && p.compiler.limits > maxLimits {
		p.compiler.fail(p.at, "the rules make more than 500,000 limits: those of each branch, for each way to find who is counted",
			"write fewer limits in rules with many branches, or fewer sources of who is counted")
	}
	return p.compiler.limits > maxLimits
}

// items returns the limits of one scope: those of `limits`, then the quota, the slots, and the
// candidate.
func (p *planner) items(t rulefile.Terms, scope string, as role) []item {
	var all []item
	if t.Limits != nil {
		for i := range t.Limits.All {
			all = append(all, p.item(&t.Limits.All[i], t.Queue, scope, as, t.Over))
		}
	}
	if q := t.Quota; q != nil {
		as := as
		as.status = q.Status
		var made item
		var err error
		if q.AnchorFrom != nil {
			made, err = p.anchored(p.ids, q, scope, as, t.Over)
		} else {
			made.held, err = p.held(q.Spec, scope, as, t.Over)
		}
		p.found(q.Pos, err)
		all = append(all, made)
	}
	if s := t.Concurrency; s != nil {
		as := as
		as.slot, as.settle = true, ""
		made, err := p.held(s.Spec, scope, as, nil)
		p.found(s.Pos, err)
		all = append(all, item{held: made})
	}
	if w := p.written.Candidate; w != nil {
		as := role{is: tidegate.Tries, settle: as.settle}
		all = append(all, p.item(w, t.Queue, scope+"#candidate", as, nil))
	}
	return all
}

func (p *planner) item(w *rulefile.Limit, q *rulefile.Queue, scope string, as role, over *rulefile.Over) item {
	spec := w.Spec
	if q != nil && spec.Algorithm == tidegate.LeakyBucket {
		spec.Burst = q.Places
	}
	var made item
	var err error
	if w.From != nil {
		made, err = p.events(p.ids, w.From, spec, scope, as, over)
	} else {
		made.held, err = p.held(spec, scope, as, over)
	}
	p.found(w.Pos, err)
	if err == nil && w.Auto && p.written.Shares() != tidegate.Strict {
		for _, l := range []*tidegate.Limit{made.some().limit, made.some().nominal} {
			if l != nil {
				p.limiter.rule.choose(l)
			}
		}
	}
	return made
}

// choose records that `consistency` determined the algorithm of l.
func (r *rule) choose(l *tidegate.Limit) {
	if r.chosen == nil {
		r.chosen = make(map[string]bool)
	}
	r.chosen[l.Identity()] = true
}
