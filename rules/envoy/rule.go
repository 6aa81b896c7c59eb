package envoy

import "tidegate.dev/tidegate"

// Rule is what a descriptor is held to: a `rate_limit` of a file, or the limit that a
// request brings along. It is immutable and shared.
type Rule struct {
	// Path is the metric key of envoyproxy/ratelimit without values of requests:
	// "rl.foo.bar_banned". Different rules may have the same one; see [Rule.Metric].
	Path string
	// Name is `name`, by which other rules replace this one; "" means none.
	Name string
	// Replaces are the names of other rules. When a descriptor of a call is held to this rule,
	// descriptors of those rules are left out of the call, neither asked nor charged.
	Replaces []string
	// Limits are all held to at once: one, or several if the file has `tidegate: { limits }`.
	// None if Unlimited. A limit of 0 requests has the algorithm [tidegate.Deny], which no
	// store takes: it refuses everything.
	Limits []*tidegate.Limit
	// RequestsPerUnit and Unit of the first limit, as the file says. Unit is NoUnit if
	// the period is none of the units.
	RequestsPerUnit uint32
	Unit            Unit
	// Unlimited: every request is admitted, and nothing is counted.
	Unlimited bool
	// Shadow: counted, never refused.
	Shadow bool
	// Quota: a call is refused only if all of its descriptors of rules with Quota are over.
	Quota bool
	// Metadata is what dynamic metadata says of the rule, as structpb.NewStruct takes it:
	// string, bool, float64, nil, []any and map[string]any. It must not be changed.
	Metadata map[string]any
	// CountRejected: hits are charged even if they are refused, as envoyproxy/ratelimit does.
	// Stores do not do that for a fixed window: the caller of the store charges refused hits with
	// Adjust if the Decision has Remaining; if it has none, the window is full already.
	CountRejected bool
	// Settle: hits are charged even without room, and never make the call fail. A call at the end
	// of a stream uses it.
	Settle bool
	// Override: the limit comes from a request, not from a file.
	Override bool
	// Pos is where the file has the rule; zero for an Override.
	Pos Pos

	domain *Domain
	steps  []step
	told   []told // of Limits
	vary   []int  // indexes of the entries whose values tell counters apart
	metric bool   // Metric depends on values
	detail bool   // detailed_metric
}

// step is one descriptor on the way to a rule.
type step struct {
	key, value string // value is "" for a descriptor with the key alone
	shared     bool   // share_threshold
	metric     bool   // value_to_metric
}

// told is a limit as answers describe it.
type told struct {
	requests uint32
	unit     Unit
}

// Told returns how answers describe a limit of r, which may be nil for the first one. Unit is
// NoUnit if the period is none of the units.
func (r *Rule) Told(l *tidegate.Limit) (requestsPerUnit uint32, unit Unit) {
	for i := range r.Limits {
		if r.Limits[i] == l {
			return r.told[i].requests, r.told[i].unit
		}
	}
	return r.RequestsPerUnit, r.Unit
}

// Key returns the key of the counter that entries are held to. Together with the Identity of
// a limit of r it is different for different domains, rules and values. Where the file has
// share_threshold, all values that match a pattern have one key.
func (r *Rule) Key(entries []Entry) string {
	var room [2 * tidegate.MaxKey]byte
	return string(r.AppendKey(room[:0], entries))
}

// AppendKey appends Key to b, and does not allocate if that has room for what it is made of.
func (r *Rule) AppendKey(b []byte, entries []Entry) []byte {
	var room [16]string
	parts := room[:0]
	if r.Override {
		for i := range entries {
			parts = append(parts, entries[i].Key, entries[i].Value)
		}
		return tidegate.AppendKey(b, parts...)
	}
	for _, i := range r.vary {
		parts = append(parts, entries[i].Value)
	}
	if len(parts) == 0 {
		parts = append(parts, "") // a key is never empty
	}
	return tidegate.AppendKey(b, parts...)
}
