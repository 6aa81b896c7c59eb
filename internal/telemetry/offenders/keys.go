package offenders

// Keys returns the keys of a rule that are in any of its lists, each once, unhashed: they may be
// secrets, so hash them before showing them if required.
func (of *Offenders) Keys(rule string) []string {
	r := (*of.table.all.Load())[rule]
	if r == nil {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	var all []string
	seen := make(map[string]bool)
	for _, l := range r.lists {
		if l == nil {
			continue
		}
		of.pool.each(l, func(_ uint16, e *entry) {
			if key := string(e.key[:e.length]); !seen[key] {
				seen[key] = true
				all = append(all, key)
			}
		})
	}
	return all
}
