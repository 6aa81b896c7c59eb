package offenders

// Keys returns the keys on any list of a rule, each once, so that stores which know keys only by
// hash can name some. They may be secrets: show only what [Options].Subject makes of them.
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
