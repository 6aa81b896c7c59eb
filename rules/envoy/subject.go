package envoy

// Counts returns the names of the entries whose values tell the counters of r apart, in the order
// of [Rule.Key]. An override has none: its key has the names itself.
func (r *Rule) Counts() []string {
	names := make([]string, 0, len(r.vary))
	for _, i := range r.vary {
		names = append(names, r.steps[i].key)
	}
	return names
}
