package offenders

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

const (
	// ExactRate is how many decisions a second, by all rules together, are looked at without
	// exception. If there are more, SampledRate of them are, so that each costs little.
	ExactRate   = 5_000
	SampledRate = ExactRate / 4

	tickEvery      = 100 * time.Millisecond
	perTick        = ExactRate * uint32(tickEvery/time.Millisecond) / 1000
	sampledPerTick = perTick * SampledRate / ExactRate
	// leastCap is what is looked at of each class between two ticks, however many there are.
	leastCap  = 8
	leastRoom = perTick / 16
	maxMask   = 1<<20 - 1
)

// budget divides the decisions that may be looked at among the classes of all rules.
type budget struct {
	cap   uint32 // of a class until the next tick
	taken uint32 // by all classes since cap was last lowered
	room  uint32 // that they may take until it is lowered again
	rates []uint32
}

func (b *budget) reset() { b.cap, b.room, b.taken = perTick, perTick, 0 }

// spent records that a decision of c was looked at. A class that uses up its share before the next tick
// is sampled more thinly at once, so that a burst costs little more than its beginning.
func (b *budget) spent(c *class, weight uint32) {
	c.seen += min(weight, math.MaxUint32-c.seen)
	c.taken++
	b.taken++
	if c.taken > b.cap {
		c.taken = 0
		if mask := c.mask.Load(); mask < maxMask {
			c.mask.Store(mask<<1 | 1)
		}
	}
	if b.taken > b.room {
		b.taken = 0
		b.cap, b.room = max(b.cap/2, leastCap), max(b.room/2, leastRoom)
	}
}

// adapt divides the budget again by what was seen since the last tick: decisions of classes that need
// less than an equal share are all looked at, the other classes get equal shares of the rest.
func (of *Offenders) adapt() {
	b := &of.budget
	b.rates = b.rates[:0]
	sum := uint64(0)
	all := *of.table.all.Load()
	for _, r := range all {
		for i := range r.classes {
			if seen := r.classes[i].seen; seen > 0 {
				b.rates = append(b.rates, seen)
				sum += uint64(seen)
			}
		}
	}
	b.reset()
	budget := uint64(perTick)
	if sum > budget {
		budget = uint64(sampledPerTick)
	}
	b.cap = max(share(b.rates, budget), leastCap)
	for _, r := range all {
		of.markSampled(r)
		for i := range r.classes {
			c := &r.classes[i]
			if mask := maskFor(uint64(c.seen), b.cap); mask != c.mask.Load() {
				c.mask.Store(mask)
			}
			c.seen, c.taken = 0, 0
		}
	}
}

// markSampled records in the lists of r that decisions may have been skipped since the last tick, even
// if none was looked at that stands for them.
func (of *Offenders) markSampled(r *Rule) {
	seldom := r.classes[rare].mask.Load()
	widest := max(seldom, r.classes[common].mask.Load())
	for _, l := range r.lists {
		if l == nil || widest == 0 {
			continue
		}
		mask := widest
		if l.kind == refused || l.kind == wouldRefuse { // of rare decisions alone
			mask = seldom
		}
		of.pool.advance(l, of.now)
		m := cellOf(l.at.minute())
		l.weight[m] = max(l.weight[m], uint8(bits.Len32(mask)))
	}
}

// share returns the largest share that every rate above it can have without exceeding the budget.
func share(rates []uint32, budget uint64) uint32 {
	slices.Sort(rates)
	left := budget
	for i, rate := range rates {
		equal := left / uint64(len(rates)-i)
		if uint64(rate) > equal {
			return uint32(equal)
		}
		left -= uint64(rate)
	}
	return uint32(budget)
}

// maskFor returns the mask of one less than a power of two by which at most share of seen are
// looked at.
func maskFor(seen uint64, share uint32) uint32 {
	if seen <= uint64(share) {
		return 0
	}
	stride := (seen + uint64(share) - 1) / uint64(share)
	return uint32(min(uint64(1)<<bits.Len64(stride-1)-1, maxMask))
}
