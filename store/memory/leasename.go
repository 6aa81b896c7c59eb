package memory

import "tidegate.dev/tidegate/internal/algo"

// leaseName reserves n names of leases, one after the other: instants that no
// other lease has. They are of the same microsecond as now, as what else is
// charged at now will be looked for under the receipt: where a clock stands still
// and so many leases were taken that it has no more names, or where it was set
// back, names are used that no lease of these keys has.
func (s *Store) leaseName(now, n int64, taken func(from, to int64) bool) int64 {
	n = max(n, 1)
	micro := now / algo.Micro * algo.Micro
	for {
		last := s.lastAt.Load()
		at := max(now, last+1)
		if at+n > micro+algo.Micro {
			break
		}
		if s.lastAt.CompareAndSwap(last, at+n-1) {
			return at
		}
	}
	for at := micro; at+n <= micro+algo.Micro; at++ {
		if !taken(at, at+n-1) {
			return at
		}
	}
	for { // more than a microsecond has names for
		last := s.lastAt.Load()
		at := max(now, last+1)
		if s.lastAt.CompareAndSwap(last, at+n-1) {
			return at
		}
	}
}
