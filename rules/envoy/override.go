package envoy

import (
	"fmt"
	"sync"

	"tidegate.dev/tidegate"
)

// maxOverrides bounds how many limits of requests a domain remembers. Envoy takes them from its own
// configuration or from metadata, so that there are few.
const maxOverrides = 1024

// overrides are the rules made of limits in requests.
type overrides struct {
	mu    sync.RWMutex
	rules map[told]*Rule
}

// Override returns the rule of a descriptor that brings its own limit, which takes precedence over
// the limits of the files and is never in shadow mode. Counters belong to the unit and the entries:
// a request with a higher limit has room where one with a lower limit was refused. The error says
// that unit is not a unit.
func (d *Domain) Override(requestsPerUnit uint32, unit Unit) (*Rule, error) {
	if unit.Period() == 0 {
		return nil, fmt.Errorf("the limit of a descriptor has the unit %d, which is not one of %v", uint8(unit), unitNames)
	}
	t := told{requestsPerUnit, unit}
	o := &d.overrides
	o.mu.RLock()
	r := o.rules[t]
	o.mu.RUnlock()
	if r != nil {
		return r, nil
	}
	r, err := d.newOverride(t)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if before := o.rules[t]; before != nil {
		return before, nil
	}
	if o.rules == nil || len(o.rules) >= maxOverrides {
		o.rules = make(map[told]*Rule) // counters stay: they go by identity
	}
	o.rules[t] = r
	return r, nil
}

func (d *Domain) newOverride(t told) (*Rule, error) {
	r := &Rule{Path: d.name + ".override", domain: d, Override: true, metric: true, CountRejected: true}
	limit, err := tidegate.NewLimit(counted(t, tidegate.Spec{
		Name: r.Path, Scope: scope(d.name, nil, true), Terms: termsOf(r.Path),
	}))
	if err != nil {
		return nil, err
	}
	r.hold(limit, t)
	return r, nil
}
