package memory

import "tidegate.dev/tidegate/internal/algo"

// leaseName reserves n consecutive names of leases: instants that no other lease has. They
// are in the same microsecond as now, because the receipt must also find what else is charged
// at now. If that microsecond has no names left although the clock stands still, or if the
// clock was set back, it reuses names that no lease of these keys has, as taken reports.
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
