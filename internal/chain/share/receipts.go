package share

import (
	"maps"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
)

// Receipts writes and reads the receipts of a layer that decides some checks by counters of its own,
// and leaves the others to the store below.
type Receipts struct {
	// Mark is the prefix of the names of the layer's counters. No identity of a limit begins with it.
	Mark string
	// Origin of what the layer decides alone.
	Origin tidegate.Origin
	// Instance is random: it names the counters of this process.
	Instance uint64
}

// Sign makes r the receipt of what the layer has decided alone.
func (s *Receipts) Sign(r *tidegate.Receipt) { r.Origin, r.Instance = s.Origin, s.Instance }

// Foreign reports whether r is of what another instance decided.
func (s *Receipts) Foreign(r tidegate.Receipt) bool {
	return r.Origin == s.Origin && r.Instance != s.Instance
}

// Name returns the name in receipts of a counter of this instance.
func (s *Receipts) Name(c *tidegate.Check) string {
	return s.Mark + strconv.FormatUint(s.Instance, 36) + "\x00" + c.Limit.Identity() + "\x00" + c.Key
}

// Mixed joins own, about the checks of the layer, and d, about all others, which have both admitted:
// the decision is about the limit with the smaller share left, and the receipt is for both.
func (s *Receipts) Mixed(d, own *tidegate.Decision, checks []tidegate.Check) tidegate.Decision {
	told := *d
	if own.Outranks(d) {
		told.Limit, told.Remaining, told.ResetAfter = own.Limit, own.Remaining, own.ResetAfter
	}
	told.Wait = max(d.Wait, own.Wait)
	apart := tidegate.Apart{Local: make(map[string]int64, len(checks))}
	if was := d.Receipt.Apart; was != nil {
		apart.At = was.At
		maps.Copy(apart.Local, was.Local) // the counters of a layer below
	}
	for i := range checks {
		apart.Local[s.Name(&checks[i])] = own.Receipt.At - d.Receipt.At
	}
	told.Receipt.Apart = &apart
	return told
}

// Divided is checks, divided by where they were charged, with the receipt for each part.
type Divided struct {
	Ours   tidegate.Receipt
	Here   []tidegate.Check
	Theirs tidegate.Receipt
	There  []tidegate.Check
	// Err is ErrElsewhere if another instance has charged some.
	Err error
}

// Divide divides checks, by their receipt, into those charged here and the others. A charge without
// a receipt goes to the counters that its limit has now: is reports whether they are of this layer.
func (s *Receipts) Divide(r tidegate.Receipt, checks []tidegate.Check, is func(*tidegate.Limit) bool) Divided {
	v := Divided{Ours: r, Theirs: r}
	v.Ours.Apart, v.Theirs.Apart = nil, s.Without(r.Apart)
	for _, c := range checks {
		if !is(c.Limit) {
			v.There = append(v.There, c)
			continue
		}
		later, apart := int64(0), false
		if r.Apart != nil {
			later, apart = r.Apart.Local[s.Name(&c)]
		}
		switch {
		case apart:
			v.Ours.At = r.At + later
			v.Here = append(v.Here, c)
		case r.Origin == s.Origin || r.At == 0 || c.Cost >= 0:
			v.Here = append(v.Here, c)
		case v.Theirs.Apart != r.Apart: // a part of it is another instance's
			v.Err = tidegate.ErrElsewhere
		default: // this layer did not count it at that time
			v.There = append(v.There, c)
		}
	}
	return v
}

// Without returns apart as the store below wrote it.
func (s *Receipts) Without(apart *tidegate.Apart) *tidegate.Apart {
	if apart == nil {
		return nil
	}
	is := tidegate.Apart{At: apart.At, Local: maps.Clone(apart.Local)}
	maps.DeleteFunc(is.Local, func(name string, _ int64) bool { return strings.HasPrefix(name, s.Mark) })
	switch {
	case len(is.Local) == len(apart.Local):
		return apart
	case len(is.Local) > 0:
		return &is
	case is.At == nil:
		return nil
	}
	is.Local = nil
	return &is
}
