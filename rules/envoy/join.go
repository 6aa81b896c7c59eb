package envoy

import "maps"

// Join returns a Set with the domains of both. A domain that both have is that of s.
func (s *Set) Join(other *Set) *Set {
	switch {
	case other == nil:
		return s
	case s == nil:
		return other
	}
	joined := &Set{domains: maps.Clone(other.domains)}
	maps.Copy(joined.domains, s.domains)
	return joined
}

// Common returns the names of the domains that both have, sorted.
func (s *Set) Common(other *Set) (names []string) {
	for _, name := range s.Domains() {
		if other.Domain(name) != nil {
			names = append(names, name)
		}
	}
	return names
}
