package rules

// forks finds the branch of a for that a request takes: the first whose conditions hold. Long lists
// of branches, such as one per tenant, are looked up by the value that they require.
type forks struct {
	byValue []forkIndex
	others  []int32 // tested one by one, in order
}

type forkIndex struct {
	id       *identity
	branches map[string][]int32 // in order
}

// fewForks is the largest number of branches for which testing one by one is faster than a lookup.
const fewForks = 8

func newForks(branches []plan) forks {
	if len(branches) == 0 {
		return forks{}
	}
	common := make(literals)
	for i := range branches {
		common.add(branches[i].conds.when)
	}
	var f forks
	at := make(map[*identity]int)
	for i := range branches {
		c := common.best(branches[i].conds.when)
		if len(branches) <= fewForks || c == nil {
			f.others = append(f.others, int32(i))
			continue
		}
		n, ok := at[c.id]
		if !ok {
			n = len(f.byValue)
			at[c.id] = n
			f.byValue = append(f.byValue, forkIndex{id: c.id, branches: make(map[string][]int32)})
		}
		for _, v := range c.values() {
			f.byValue[n].branches[v] = append(f.byValue[n].branches[v], int32(i))
		}
	}
	return f
}

// plan returns the plan of the first branch that holds, or the rule's own.
func (r *rule) plan(st *state, h *hit) *plan {
	first := int32(len(r.plans) - 1)
	for i := range r.forks.byValue {
		x := &r.forks.byValue[i]
		if v, ok := st.find(x.id, h); ok {
			first = r.firstOf(x.branches[v.text], first, st, h)
		}
	}
	first = r.firstOf(r.forks.others, first, st, h)
	if int(first) == len(r.plans)-1 {
		return &r.plans[0]
	}
	return &r.plans[1+first]
}

// firstOf returns the first of branches that holds and has not expired, if its index is below
// before; otherwise it returns before.
func (r *rule) firstOf(branches []int32, before int32, st *state, h *hit) int32 {
	for _, b := range branches {
		if b >= before {
			break
		}
		p := &r.plans[1+b]
		if p.conds.holds(st, h) && !p.expired(st.set) {
			return b
		}
	}
	return before
}

// expired reports whether the branch has ended. It reads the clock only if the branch has an end.
func (p *plan) expired(s *Set) bool {
	return !p.branch.Until.IsZero() && !s.config.now().Before(p.branch.Until)
}
