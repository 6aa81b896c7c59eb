package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// PushedLasts is how long a pushed value is valid: push at least twice a minute. After that the
// signal is unknown.
const PushedLasts = time.Minute

// signalNames are the signals that rule files can name.
var signalNames = []string{"cpu", "memory", "upstream_p99", "upstream_inflight", "inflight", "load"}

// Pushed are [Signals] that a program measures itself. The zero value is ready to use and knows
// none.
type Pushed struct {
	mu     sync.RWMutex
	values map[string]pushedValue
}

type pushedValue struct {
	value float64
	at    time.Time
}

// Push sets a signal for [PushedLasts]: "cpu" and "memory" as a share of 1, "upstream_p99" in
// seconds, "inflight" and "upstream_inflight" in requests, "load" in whatever the rules compare it
// with. It is safe for concurrent use.
func (p *Pushed) Push(name string, value float64) error {
	if !slices.Contains(signalNames, name) {
		return fmt.Errorf("there is no signal %q: the signals are %s", name, strings.Join(signalNames, ", "))
	}
	if !(value >= 0) || math.IsInf(value, 0) {
		return fmt.Errorf("%s cannot be %v: a signal is a number from 0 upwards", name, value)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = make(map[string]pushedValue)
	}
	p.values[name] = pushedValue{value, time.Now()}
	return nil
}

// Signal implements [Signals].
func (p *Pushed) Signal(name string) (value float64, ok bool) {
	p.mu.RLock()
	v, ok := p.values[name]
	p.mu.RUnlock()
	if !ok || time.Since(v.at) >= PushedLasts {
		return 0, false
	}
	return v.value, true
}
