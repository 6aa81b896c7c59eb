package grpclimit

import "sync"

// budget bounds how many calls are repeated. It is a token bucket that calls refill, not time.
type budget struct {
	share float64 // what a call adds

	mu   sync.Mutex
	left float64
}

// maxBudget is how much a budget holds, and what it starts with.
const maxBudget = 10

// earn adds the share of a call.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+b.share, maxBudget)
}

// spend takes 1 for a repeat, and reports whether there was as much.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
