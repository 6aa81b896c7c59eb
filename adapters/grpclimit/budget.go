package grpclimit

import "sync"

// budget bounds how many calls are repeated: a share of all calls, and some at any time.
type budget struct {
	share float64 // that a call adds

	mu   sync.Mutex
	left float64
}

// maxBudget is how many calls may be repeated at any time.
const maxBudget = 10

// earn adds the share of a call.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+b.share, maxBudget)
}

// spend reports whether one more call may be repeated.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
