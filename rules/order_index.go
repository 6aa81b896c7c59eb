package rules

import (
	"net/netip"
	"slices"

	"tidegate.dev/tidegate/internal/lang/route"
)

// orderIndex finds orders by the identities of a request. Each order is indexed by the value of one
// identity, so a lookup tries only those with a value of the request, and those about everyone.
type orderIndex struct {
	names    []identityOrders
	everyone []*order // by rank, like all lists of orders
}

// identityOrders has the orders that are indexed by one identity.
type identityOrders struct {
	id           *identity
	fold         bool
	texts        map[string][]*order
	networks     map[netip.Prefix][]*order
	bits4, bits6 []int // lengths of the networks
}

// newOrderIndex indexes orders, which are sorted by rank. It returns nil for none.
func newOrderIndex(orders []*order) *orderIndex {
	if len(orders) == 0 {
		return nil
	}
	crowds := make(map[literal]int)
	for _, o := range orders {
		for i := range o.who {
			for _, l := range o.who[i].literals() {
				crowds[l]++
			}
		}
	}
	r := &orderIndex{}
	for _, o := range orders {
		r.add(o, rarest(o.who, crowds))
	}
	return r
}

// rarest returns the holder in who with the value that the fewest orders name; nil if all of who
// are everyone.
func rarest(who []holder, crowds map[literal]int) *holder {
	var best *holder
	fewest := 0
	for i := range who {
		crowd := 0
		for _, l := range who[i].literals() {
			crowd = max(crowd, crowds[l])
		}
		switch {
		case who[i].everyone:
		case best == nil || crowd < fewest || crowd == fewest && best.id.local && !who[i].id.local:
			best, fewest = &who[i], crowd
		}
	}
	return best
}

// add indexes o by w; nil means that it is about everyone.
func (r *orderIndex) add(o *order, w *holder) {
	if w == nil {
		r.everyone = append(r.everyone, o)
		return
	}
	i := slices.IndexFunc(r.names, func(n identityOrders) bool { return n.id == w.id })
	if i < 0 {
		i = len(r.names)
		r.names = append(r.names, identityOrders{id: w.id, fold: w.fold, texts: make(map[string][]*order), networks: make(map[netip.Prefix][]*order)})
	}
	n := &r.names[i]
	for _, text := range w.texts {
		n.texts[text] = append(n.texts[text], o)
	}
	if !w.network.IsValid() {
		return
	}
	n.networks[w.network] = append(n.networks[w.network], o)
	lengths := &n.bits6
	if w.network.Addr().Is4() {
		lengths = &n.bits4
	}
	if !slices.Contains(*lengths, w.network.Bits()) {
		*lengths = append(*lengths, w.network.Bits())
	}
}

// find returns the order with the highest precedence that matches the request; nil if none does. h
// is the rule that asks, or nil.
func (r *orderIndex) find(st *state, h *hit) *order {
	if r == nil {
		return nil
	}
	best := firstHeld(r.everyone, nil, st, h)
	for i := range r.names {
		n := &r.names[i]
		v, ok := st.peek(n.id, h)
		if !ok {
			continue
		}
		text := v.text
		if n.fold {
			text = route.Fold(text)
		}
		best = firstHeld(n.texts[text], best, st, h)
		if len(n.networks) > 0 {
			best = n.findNetwork(st.addressOf(n.id, v), best, st, h)
		}
	}
	return best
}

func (n *identityOrders) findNetwork(addr netip.Addr, best *order, st *state, h *hit) *order {
	if !addr.IsValid() {
		return best
	}
	lengths := n.bits6
	if addr.Is4() {
		lengths = n.bits4
	}
	for _, bits := range lengths {
		if p, err := addr.Prefix(bits); err == nil {
			best = firstHeld(n.networks[p], best, st, h)
		}
	}
	return best
}

// firstHeld returns the first of orders that matches and has not ended; best if there is none, or
// if best has the lower rank.
func firstHeld(orders []*order, best *order, st *state, h *hit) *order {
	for _, o := range orders {
		if best != nil && o.rank >= best.rank {
			break
		}
		if o.holds(st, h) && !o.ended(st) {
			return o
		}
	}
	return best
}

// holds reports whether all of o.who match the request.
func (o *order) holds(st *state, h *hit) bool {
	for i := range o.who {
		if !o.who[i].holds(st, h) {
			return false
		}
	}
	return true
}
