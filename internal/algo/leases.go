package algo

import (
	"slices"

	"tidegate.dev/tidegate"
)

// LeaseLaw is the law of concurrency: slots in use, each on a lease that its holder
// renews. A lease is named by the instant at which it was taken.
type LeaseLaw struct {
	Slots int64
	Brim  int64 // how many may be in use: Slots less the floor
	Lease int64 // ticks
}

// A record of the leases held is [0] how many, then for each the instant it was
// taken and the instant it ends. An empty one is all zeros.

// NewLeaseLaw makes the law of a concurrency limit.
func NewLeaseLaw(l *tidegate.Limit) LeaseLaw {
	return LeaseLaw{Slots: l.Events, Brim: l.Events, Lease: Ticks(l.Period)}
}

// LeasesHeader is how many words a record has besides its leases, of two words each.
const LeasesHeader = 1

// Held returns how many leases the record holds, ended ones included.
func (r *Record) Held() int { return int(r.Get(0)) }

// taken returns the instant that names the lease i, and ends the one at which it runs out.
func (r *Record) taken(i int) int64 { return int64(r.Get(1 + 2*i)) }
func (r *Record) ends(i int) int64  { return int64(r.Get(2 + 2*i)) }

func (r *Record) setLease(i int, taken, ends int64) {
	r.Set(1+2*i, uint64(taken))
	r.Set(2+2*i, uint64(ends))
}

// vacate forgets the lease i; the last one takes its place.
func (r *Record) vacate(i int) {
	last := r.Held() - 1
	r.setLease(i, r.taken(last), r.ends(last))
	r.Set(0, uint64(last))
}

// advance forgets the leases that have ended. A lease that ends later than a new one
// would is shortened to that: the clock was set back.
func (l *LeaseLaw) advance(r Leases, now int64) {
	for i := r.Held() - 1; i >= 0; i-- {
		if ends := r.ends(i); ends <= now {
			r.vacate(i)
		} else if ends > now+l.Lease {
			r.setLease(i, r.taken(i), now+l.Lease)
		}
	}
}

// Fit returns how many copies Take would grant.
func (l *LeaseLaw) Fit(r Leases, now int64, a Ask) int64 {
	l.advance(r, now)
	return a.copies(l.Brim - int64(r.Held()))
}

// Take grants what fits: copy i is held under the name at+i. When r is too
// small it does nothing and reports false.
func (l *LeaseLaw) Take(r Leases, now, at int64, a Ask) (Verdict, bool) {
	l.advance(r, now)
	k := a.copies(l.Brim - int64(r.Held()))
	v := Verdict{Granted: k}
	if n := int(k * max(a.Cost, 0)); n > 0 {
		held := r.Held()
		if LeasesHeader+2*(held+n) > r.size {
			return Verdict{}, false
		}
		for i := range n {
			r.setLease(held+i, at+int64(i)/a.Cost, now+l.Lease)
		}
		r.Set(0, uint64(held+n))
	}
	v.Remaining = max(0, l.Brim-int64(r.Held()))
	for i := range r.Held() {
		v.Reset = max(v.Reset, r.ends(i)-now)
	}
	switch {
	case k > 0:
	case a.unit() > l.Brim:
		v.Delay = Never
	default:
		v.Delay = l.retry(r, a.unit()) - now
	}
	return v, true
}

// retry returns when enough leases will have ended for cost slots to be free, if nobody
// renews or releases one.
func (l *LeaseLaw) retry(r Leases, cost int64) int64 {
	must := int64(r.Held()) + cost - l.Brim
	if must == 1 {
		first := int64(Never)
		for i := range r.Held() {
			first = min(first, r.ends(i))
		}
		return first
	}
	all := make([]int64, r.Held())
	for i := range all {
		all[i] = r.ends(i)
	}
	slices.Sort(all)
	return all[must-1]
}

// Release frees up to n slots taken at the instant at.
func (l *LeaseLaw) Release(r Leases, now, at, n int64) {
	l.advance(r, now)
	for i := r.Held() - 1; i >= 0 && n > 0; i-- {
		if r.taken(i) == at {
			r.vacate(i)
			n--
		}
	}
}

// Renew prolongs the leases taken at the instant at and reports whether there
// are any.
func (l *LeaseLaw) Renew(r Leases, now, at int64) bool {
	l.advance(r, now)
	found := false
	for i := range r.Held() {
		if r.taken(i) == at {
			r.setLease(i, at, now+l.Lease)
			found = true
		}
	}
	return found
}

// Idle reports whether r says nothing more than an empty record does.
func (l *LeaseLaw) Idle(r Leases, now int64) bool {
	for i := range r.Held() {
		if r.ends(i) > now {
			return false
		}
	}
	return true
}

// HasName reports whether the name of a lease of r is between from and to, both included.
func (l *LeaseLaw) HasName(r Leases, from, to int64) bool {
	for i := range r.Held() {
		if at := r.taken(i); from <= at && at <= to {
			return true
		}
	}
	return false
}
