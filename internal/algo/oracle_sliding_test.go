package algo

import (
	"math/big"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// charges are all the charges ever made, each in the slice of time it fell in.
type charges []sliceCharge

type sliceCharge struct{ slice, n int64 }

func (c charges) in(slice int64) (n int64) {
	for _, e := range c {
		if e.slice == slice {
			n += e.n
		}
	}
	return n
}

// estimate is ⌊whole + leaving·overlap⌋ in exact integers, for a slice of time
// of the given length at an offset, both in µs and then counted in the smallest
// unit of 2^s µs for which (2·events+1)·slice stays below 2^53.
func estimate(whole, leaving, offset, length, events int64) int64 {
	for s := 0; ; s++ {
		slice := (length + 1<<s - 1) / (1 << s)
		top := new(big.Int).Mul(big.NewInt(2*events+1), big.NewInt(slice))
		if top.BitLen() > 53 {
			continue
		}
		weight := new(big.Int).Mul(big.NewInt(leaving), big.NewInt(slice-offset/(1<<s)))
		return whole + weight.Div(weight, big.NewInt(slice)).Int64()
	}
}

// slidingOracle is sliding_window: two aligned windows.
type slidingOracle struct {
	limit *tidegate.Limit
	all   charges
}

func (o *slidingOracle) length() int64          { return int64(o.limit.Period / time.Microsecond) }
func (o *slidingOracle) window(now int64) int64 { return now / 1024 / o.length() }

func (o *slidingOracle) used(now int64) int64 {
	w := o.window(now)
	if o.limit.Ceiling {
		return o.all.in(w) + o.all.in(w-1)
	}
	return estimate(o.all.in(w), o.all.in(w-1), now/1024-w*o.length(), o.length(), o.limit.Events)
}

func (o *slidingOracle) one(now, _, unit, _ int64, charge bool) (bool, int64) {
	if unit > o.limit.Events-o.used(now) {
		return false, 0
	}
	if charge {
		o.all = append(o.all, sliceCharge{o.window(now), unit})
	}
	return true, 0
}

func (o *slidingOracle) refused(int64, int64, int64)  {}
func (o *slidingOracle) remaining(now, _ int64) int64 { return max(0, o.limit.Events-o.used(now)) }

func (o *slidingOracle) giveBack(now, at, n int64) {
	charged := o.window(at)
	if charged >= o.window(now)-1 {
		o.all = append(o.all, sliceCharge{charged, -min(n, o.all.in(charged))})
	}
}

func (o *slidingOracle) force(now, n int64) {
	n = max(0, min(n, 2*o.limit.Events-o.used(now)))
	o.all = append(o.all, sliceCharge{o.window(now), n})
}

func (o *slidingOracle) clean(now int64) bool {
	w := o.window(now)
	return o.all.in(w) == 0 && o.all.in(w-1) == 0
}

func (o *slidingOracle) change(l *tidegate.Limit) { o.limit = l }
func (o *slidingOracle) clone() oracle            { return &slidingOracle{o.limit, slices.Clone(o.all)} }

// partsOracle is sub_windows: whole parts, and the one that is leaving.
type partsOracle struct {
	limit *tidegate.Limit
	all   charges
}

func (o *partsOracle) length() int64 {
	n := int64(o.limit.Parts)
	return (int64(o.limit.Period/time.Microsecond) + n - 1) / n
}

func (o *partsOracle) part(now int64) int64 { return now / 1024 / o.length() }

func (o *partsOracle) used(now int64) int64 {
	p := o.part(now)
	var whole int64
	for _, e := range o.all {
		if p-int64(o.limit.Parts) < e.slice && e.slice <= p {
			whole += e.n
		}
	}
	leaving := o.all.in(p - int64(o.limit.Parts))
	if o.limit.Ceiling {
		return whole + leaving
	}
	return estimate(whole, leaving, now/1024-p*o.length(), o.length(), o.limit.Events)
}

func (o *partsOracle) one(now, _, unit, _ int64, charge bool) (bool, int64) {
	if unit > o.limit.Events-o.used(now) {
		return false, 0
	}
	if charge {
		o.all = append(o.all, sliceCharge{o.part(now), unit})
	}
	return true, 0
}

func (o *partsOracle) refused(int64, int64, int64)  {}
func (o *partsOracle) remaining(now, _ int64) int64 { return max(0, o.limit.Events-o.used(now)) }

func (o *partsOracle) giveBack(now, at, n int64) {
	charged := o.part(at)
	if charged >= o.part(now)-int64(o.limit.Parts) {
		o.all = append(o.all, sliceCharge{charged, -min(n, o.all.in(charged))})
	}
}

func (o *partsOracle) force(now, n int64) {
	n = max(0, min(n, 2*o.limit.Events-o.used(now)))
	o.all = append(o.all, sliceCharge{o.part(now), n})
}

func (o *partsOracle) clean(now int64) bool {
	for p := o.part(now); p >= o.part(now)-int64(o.limit.Parts); p-- {
		if o.all.in(p) != 0 {
			return false
		}
	}
	return true
}

func (o *partsOracle) change(l *tidegate.Limit) { o.limit = l }
func (o *partsOracle) clone() oracle            { return &partsOracle{o.limit, slices.Clone(o.all)} }
