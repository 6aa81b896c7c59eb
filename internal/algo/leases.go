package algo

import (
	"slices"

	"tidegate.dev/tidegate"
)

// LeaseLaw is concurrency: slots in use, each on a lease that its holder
// renews. A lease is named by the instant at which it was taken.
type LeaseLaw struct {
	Slots int64
	Lease int64 // ticks
}

// Leases is a record of the leases held: [0] how many, then for each the
// instant it was taken and the instant it ends. An empty one is all zeros.
type Leases []uint64

// NewLeaseLaw makes the law of a concurrency limit.
func NewLeaseLaw(l *tidegate.Limit) LeaseLaw {
	return LeaseLaw{Slots: l.Events, Lease: Ticks(l.Period)}
}

// LeasesHeader is how many words a record has besides its leases, of two words each.
const LeasesHeader = 1

// MaxWords is the most words a record can come to need.
func (l *LeaseLaw) MaxWords() int { return LeasesHeader + 2*int(l.Slots) }

// Held is how many leases the record holds, ended ones included.
func (r Leases) Held() int { return int(r[0]) }

func (r Leases) pair(i int) (taken, ends *uint64) { return &r[1+2*i], &r[2+2*i] }

func (r Leases) remove(i int) {
	last := r.Held() - 1
	r[1+2*i], r[2+2*i] = r[1+2*last], r[2+2*last]
	r[0]--
}

// settle forgets the leases that have ended. One that ends further ahead than
// any lease can is cut to a full one: the clock was set back.
func (l *LeaseLaw) settle(r Leases, now int64) {
	for i := r.Held() - 1; i >= 0; i-- {
		_, ends := r.pair(i)
		if int64(*ends) <= now {
			r.remove(i)
		} else if int64(*ends) > now+l.Lease {
			*ends = uint64(now + l.Lease)
		}
	}
}

// Fit is how many copies Take would grant.
func (l *LeaseLaw) Fit(r Leases, now int64, a Ask) int64 {
	l.settle(r, now)
	return a.copies(l.Slots - int64(r.Held()))
}

// Take grants what fits: copy i is held under the name at+i. When r is too
// small it does nothing and reports false.
func (l *LeaseLaw) Take(r Leases, now, at int64, a Ask) (Verdict, bool) {
	l.settle(r, now)
	k := a.copies(l.Slots - int64(r.Held()))
	v := Verdict{Granted: k, Never: a.unit() > l.Slots}
	if n := int(k * max(a.Cost, 0)); n > 0 {
		if LeasesHeader+2*(r.Held()+n) > len(r) {
			return Verdict{}, false
		}
		for i := range int64(n) {
			taken, ends := r.pair(r.Held())
			*taken, *ends = uint64(at+i/a.Cost), uint64(now+l.Lease)
			r[0]++
		}
	}
	v.Remaining = max(0, l.Slots-int64(r.Held()))
	for i := range r.Held() {
		_, ends := r.pair(i)
		v.Reset = max(v.Reset, int64(*ends)-now)
	}
	if k == 0 && !v.Never {
		v.Retry = l.retry(r, a.unit()) - now
	}
	return v, true
}

// retry is when enough leases have ended for cost slots to be free, if nobody
// renews or releases.
func (l *LeaseLaw) retry(r Leases, cost int64) int64 {
	must := int64(r.Held()) + cost - l.Slots
	if must == 1 {
		first := int64(Never)
		for i := range r.Held() {
			_, ends := r.pair(i)
			first = min(first, int64(*ends))
		}
		return first
	}
	all := make([]int64, r.Held())
	for i := range all {
		_, ends := r.pair(i)
		all[i] = int64(*ends)
	}
	slices.Sort(all)
	return all[must-1]
}

// Release frees up to n slots taken at the instant at.
func (l *LeaseLaw) Release(r Leases, now, at, n int64) {
	l.settle(r, now)
	for i := r.Held() - 1; i >= 0 && n > 0; i-- {
		if taken, _ := r.pair(i); int64(*taken) == at {
			r.remove(i)
			n--
		}
	}
}

// Renew prolongs the leases taken at the instant at and reports whether there
// are any.
func (l *LeaseLaw) Renew(r Leases, now, at int64) bool {
	l.settle(r, now)
	found := false
	for i := range r.Held() {
		if taken, ends := r.pair(i); int64(*taken) == at {
			*ends = uint64(now + l.Lease)
			found = true
		}
	}
	return found
}

// Idle reports whether r says nothing more than an empty record does.
func (l *LeaseLaw) Idle(r Leases, now int64) bool {
	for i := range r.Held() {
		if _, ends := r.pair(i); int64(*ends) > now {
			return false
		}
	}
	return true
}
