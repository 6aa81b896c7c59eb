package rules

import (
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// variant is a rule with the limits of an override. It has a plan for each plan of the rule, made
// when a request first needs it: what the override does not name depends on the branch.
type variant struct {
	rule    *rule
	written rulefile.Order
	plans   sync.Map // *plan of the rule → *plan
}

// plan returns the plan that replaces base.
func (v *variant) plan(base *plan) *plan {
	if made, ok := v.plans.Load(base); ok {
		return made.(*plan)
	}
	made, err := v.make(base)
	if err != nil {
		return base // cannot happen: check has made a plan of every kind
	}
	first, _ := v.plans.LoadOrStore(base, made)
	return first.(*plan)
}

// check returns what is wrong with the plans.
func (v *variant) check() diag.List {
	var problems diag.List
	told := make(map[string]bool)
	w := v.rule.written()
	for _, base := range v.rule.kinds() {
		_, wrong := w.UnderOrder(base.branch, &v.written)
		if !wrong.HasErrors() {
			if _, err := v.make(base); err != nil {
				wrong.Add(diag.Problem{Message: err.Error()})
			}
		}
		for _, p := range wrong {
			if !told[p.Message] {
				told[p.Message] = true
				problems.Add(p)
			}
		}
	}
	return problems
}

// kinds returns plans of the rule, one for each set of plans that differ only in numbers.
func (r *rule) kinds() []*plan {
	if had := r.kindsOf.Load(); had != nil {
		return *had
	}
	var all []*plan
	w, seen := r.written(), make(map[string]bool)
	for i := range r.plans {
		if text := w.KindUnder(r.plans[i].branch); !seen[text] {
			seen[text] = true
			all = append(all, &r.plans[i])
		}
	}
	r.kindsOf.Store(&all) // concurrent callers store an equal value
	return all
}

func (v *variant) make(base *plan) (*plan, error) {
	r := v.rule
	terms, wrong := r.written().UnderOrder(base.branch, &v.written)
	if wrong.HasErrors() {
		return nil, wrong
	}
	made := *base
	made.decides, made.tries, made.blocks = nil, nil, nil
	switch {
	case v.written.Unlimited:
		made.unlimited, made.unblocked, made.elastic = true, true, nil
	case v.written.Limits != nil:
		made.unlimited, made.unblocked = false, false
	default:
		made.unlimited = false
	}
	var queue tidegate.Queue
	if terms.Queue != nil {
		queue = tidegate.Queue{Places: terms.Queue.Places, MaxWait: terms.Queue.MaxWait, DropOldest: terms.Queue.DropOldest}
	}
	for i, scope := range r.subject.scopes {
		if base.decides != nil {
			var block *tidegate.Limit
			if !made.unblocked && r.blocks != nil {
				block = r.blocks[i]
			}
			as := role{is: tidegate.Decides, block: block, settle: made.cost.settle, queue: queue}
			items, err := v.items(base.decides[i], terms, scope, as)
			if err == nil && block != nil {
				block, err = r.limiter().blockTelling(scope, told(items))
			}
			if err != nil {
				return nil, err
			}
			made.decides, made.blocks = append(made.decides, items), append(made.blocks, block)
		}
		if base.tries != nil {
			items, err := v.items(base.tries[i], terms, scope, role{is: tidegate.Tries, settle: made.cost.settle})
			if err != nil {
				return nil, err
			}
			made.tries = append(made.tries, items)
		}
	}
	return &made, nil
}

// items returns the limits of one scope. Items of base that the override does not name stay.
func (v *variant) items(base []item, t rulefile.Terms, scope string, as role) ([]item, error) {
	var limits, quotas, slots, candidates []item
	for _, it := range base {
		l := it.some().limit
		switch {
		case l.Scope == scope+"#candidate":
			candidates = append(candidates, it)
		case l.Algorithm == tidegate.Quota:
			quotas = append(quotas, it)
		case l.Algorithm == tidegate.Concurrency:
			slots = append(slots, it)
		default:
			limits = append(limits, it)
		}
	}
	l := v.rule.limiter()
	var err error
	if v.written.Unlimited {
		return candidates, nil
	}
	if v.written.Limits != nil {
		limits = nil
		for i := range t.Limits.All {
			h, wrong := l.held(t.Limits.All[i].Spec, scope, as, t.Over)
			if wrong != nil {
				return nil, wrong
			}
			limits = append(limits, item{held: h})
		}
	}
	if v.written.Amount > 0 {
		if quotas, err = v.quota(quotas, t, scope, as); err != nil {
			return nil, err
		}
	}
	if v.written.Slots > 0 {
		as.slot, as.settle = true, ""
		h, err := l.held(t.Concurrency.Spec, scope, as, nil)
		if err != nil {
			return nil, err
		}
		slots = []item{{held: h}}
	}
	all := append(limits[:len(limits):len(limits)], quotas...)
	return append(append(all, slots...), candidates...), nil
}

// quota returns a quota with another amount, in place of was.
func (v *variant) quota(was []item, t rulefile.Terms, scope string, as role) ([]item, error) {
	as.status = t.Quota.Status
	l := v.rule.limiter()
	otherwise, err := l.held(t.Quota.Spec, scope, as, t.Over)
	if err != nil || len(was) == 0 || was[0].vary == nil {
		return []item{{held: otherwise}}, err
	}
	vary, err := newVary(was[0].vary.id, was[0].vary.most, false, otherwise, func(n int64) (held, error) {
		spec := t.Quota.Spec
		spec.Anchor = int(n)
		return l.held(spec, scope, as, t.Over)
	})
	return []item{{vary: vary}}, err
}
