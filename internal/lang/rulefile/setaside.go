package rulefile

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// SetAside is a share of the limits of a rule that is kept for a class. Less important classes
// do not get it; more important ones do.
type SetAside struct {
	Class Word
	Share int // in hundredths of a percent
}

const setAsideHint = "write which share is kept for which class: `set_aside: { critical: 20% }`"

// setAside reads which shares of its limits a rule keeps for important classes.
func (d *decoder) setAside(o object) (all []SetAside) {
	d.classesUsed = d.classesUsed || o.has("set_aside")
	n := o.get("set_aside")
	if n == nil {
		return nil
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, "`set_aside` is a map of classes, and this is "+n.What(), setAsideHint)
		return nil
	}
	if len(n.Fields) == 0 {
		d.fail(n.Pos, "`set_aside` is empty", setAsideHint)
	}
	sum := 0
	for _, f := range n.Fields {
		s, ok := d.setAsideFor(f)
		if ok {
			sum += s.Share
			all = append(all, s)
		}
	}
	if sum >= wholeShare {
		d.fail(o.key("set_aside"), "`set_aside` leaves nothing to the class "+diag.Quote(d.file.Classes[len(d.file.Classes)-1].Name.Text), "set aside less than 100% in all")
		return nil
	}
	if o.has("block") {
		d.fail(o.key("block"), "a block would keep out the classes that `set_aside` is for, as it is of the key and not of the request", "remove `block`, or put it into a rule of its own")
	}
	return all
}

func (d *decoder) setAsideFor(f yamltree.Field) (s SetAside, ok bool) {
	s.Class = Word{f.Key.Value, f.Key.Pos}
	class, ok := d.classNamed(s.Class)
	if f.Value.Kind == yamltree.Null {
		d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(s.Class.Text+":"), setAsideHint)
		return s, false
	}
	share, valid := d.percent(f.Value, "what is set aside", s.Class.Text+": 20%")
	switch {
	case !ok || !valid:
		return s, false
	case share == 0:
		d.fail(f.Value.Pos, "nothing is set aside", "write a share above 0%, or remove "+diag.Quote(s.Class.Text))
		return s, false
	case class == len(d.file.Classes)-1:
		d.fail(f.Key.Pos, diag.Quote(s.Class.Text)+" is the least important class, so there is no other to keep it from", "set it aside for a more important class, as in `set_aside: { "+d.file.Classes[0].Name.Text+": 20% }`")
		return s, false
	}
	s.Share = share
	return s, true
}

// Leaves returns, for each class of the file, which share of the limits of r its requests have to
// leave, in hundredths of a percent: what is set aside for more important ones. It is nil if r sets
// nothing aside.
func (f *File) Leaves(r *Rule) []int {
	if len(r.SetAside) == 0 {
		return nil
	}
	shares := make([]int, len(f.Classes))
	for _, s := range r.SetAside {
		for i := f.Class(s.Class.Text) + 1; i < len(shares); i++ {
			shares[i] += s.Share
		}
	}
	return shares
}

// Leave returns how many events of a capacity a share is, in hundredths of a percent. It is rounded
// up, so that a little is kept of a small limit too, but is never all: something must be left for
// others.
func Leave(capacity int64, share int) int64 {
	s := int64(share)
	n := capacity/wholeShare*s + (capacity%wholeShare*s+wholeShare-1)/wholeShare
	return max(0, min(n, capacity-1))
}

// checkSetAside warns about limits of which nothing can be set aside, and about costs that never fit
// into what is left.
func (d *decoder) checkSetAside(r *Rule) {
	if len(r.SetAside) == 0 {
		return
	}
	leaves := d.file.Leaves(r)
	lowest := d.file.Classes[len(leaves)-1].Name.Text
	check := func(t Terms) {
		for _, l := range t.counted() {
			limit, err := tidegate.NewLimit(l.spec)
			if err != nil {
				continue // already reported
			}
			kept := Leave(limit.Capacity(), leaves[len(leaves)-1])
			least := int64(1)
			if t.Cost != nil && l.spec.Algorithm != tidegate.Concurrency {
				least = max(t.Cost.Fixed, t.Cost.Min, 1)
			}
			switch {
			case kept == 0:
				d.warn(r.SetAside[0].Class.Pos, "nothing of "+diag.Quote(l.text)+" can be set aside, as it admits one request at a time", "raise the limit, or remove `set_aside`")
			case least > limit.Capacity()-kept && least <= limit.Capacity():
				d.warn(t.Cost.Pos, fmt.Sprintf("a cost of %d never fits into the %d of %s that `set_aside` leaves to the class %s", least, limit.Capacity()-kept, diag.Quote(l.text), diag.Quote(lowest)),
					fmt.Sprintf("raise the limit, lower the cost to at most %d, or set less aside", limit.Capacity()-kept))
			}
		}
	}
	check(r.Terms)
	for i := range r.For {
		check(r.Under(&r.For[i]))
	}
}

// countedSpec is a limit of whichever kind, and how messages call it.
type countedSpec struct {
	spec tidegate.Spec
	text string
}

// counted returns all limits of t, with the quota and the slots.
func (t Terms) counted() (all []countedSpec) {
	if t.Limits != nil {
		for i := range t.Limits.All {
			l := &t.Limits.All[i]
			spec := l.Spec
			if spec.Algorithm == tidegate.LeakyBucket && t.Queue != nil {
				spec.Burst = t.Queue.Places
			}
			all = append(all, countedSpec{spec, l.Text})
		}
	}
	if t.Quota != nil {
		all = append(all, countedSpec{t.Quota.Spec, fmt.Sprintf("%d/%s", t.Quota.Spec.Events, t.Quota.Spec.Calendar)})
	}
	if t.Concurrency != nil {
		all = append(all, countedSpec{t.Concurrency.Spec, fmt.Sprintf("%d slots", t.Concurrency.Spec.Events)})
	}
	return all
}
