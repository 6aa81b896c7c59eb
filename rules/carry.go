package rules

import (
	"strings"

	"tidegate.dev/tidegate"
)

// Carried is a counter of a rule whose keys get different limits when one Set replaces another, so
// that callers may be refused at once, or no longer.
type Carried struct {
	Rule string
	// Was and Now are the first of its limits in words: 100/1m0s token_bucket burst 100.
	Was, Now string
	// Versions are the limits that its keys may have had and may get, by branch and tier: a key
	// does not say which apply to it. All limits share one Identity.
	Versions []Version
}

// Version is the check of a key before and after. A check without a Limit never refuses: the rule
// is in shadow mode, or decides only for a share of the keys.
type Version struct{ Was, Now tidegate.Check }

// Carry returns the counters that continue under different limits, or replace others, when set
// replaces old. A store that can list its keys tells which callers would be refused. Counters that
// start empty refuse nobody at first; [Compare] reports them.
func Carry(old, set *Set) []Carried {
	c := carrier{
		oldShares: old.shares(), newShares: set.shares(),
		at: make(map[string]int), seen: make(map[string]bool), follows: make(map[[3]string]bool),
	}
	s := &succession{now: set.config.now(), told: make(map[Change]bool), paired: c.pair}
	before, after := old.ledger(), set.ledger()
	s.compare(before, after)
	c.move(before, after)
	var all []Carried
	for _, carried := range c.all {
		if carried.changed() {
			all = append(all, carried)
		}
	}
	return all
}

// carrier collects counters by rule and identity.
type carrier struct {
	oldShares, newShares map[string]bool
	all                  []Carried
	at                   map[string]int
	seen                 map[string]bool    // versions
	follows              map[[3]string]bool // rule, identity of a counter, identity of the one in its place
}

func (c *carrier) pair(rule string, o, n *counter) {
	c.follows[[3]string{rule, o.limit.Identity(), n.limit.Identity()}] = true
	c.add(rule, o, n)
}

// add adds the versions of the counters o and n, where n takes the place of o.
func (c *carrier) add(rule string, o, n *counter) {
	if strings.Contains(n.limit.Scope, "#") || o.anchored && !n.anchored {
		return // blocks, marks and candidates
	}
	was, now := o.each(), n.each()
	for i := range now {
		c.version(rule, o, n, was[min(i, len(was)-1)], now[i])
	}
	if o.most != nil && n.most != nil {
		c.version(rule, o, n, o.most, n.most)
	}
}

// version adds a pair of limits that the keys of a counter may have had and may get.
func (c *carrier) version(rule string, o, n *counter, was, now *tidegate.Limit) {
	v := Version{Was: tidegate.Check{Limit: was, MaxWait: o.maxWait}, Now: tidegate.Check{Limit: now, MaxWait: n.maxWait}}
	if was.Identity() != now.Identity() {
		v.Now.Limit = standIn(was, now, nil)
	}
	all := []Version{v}
	if c.oldShares[rule] { // it is unknown for which keys it decided
		all = append(all, Version{Now: v.Now})
	}
	if c.newShares[rule] {
		all = append(all, Version{Was: v.Was})
	}
	at, ok := c.at[rule+"\x00"+was.Identity()]
	if !ok {
		at = len(c.all)
		c.at[rule+"\x00"+was.Identity()] = at
		c.all = append(c.all, Carried{Rule: rule, Was: o.text(), Now: n.text()})
	}
	for _, v := range all {
		if o.tries {
			v.Was.Limit = nil
		}
		if n.tries {
			v.Now.Limit = nil
		}
		if v.Was.Limit != nil || v.Now.Limit != nil {
			c.put(rule, at, v)
		}
	}
}

// put adds a version to a counter, once.
func (c *carrier) put(rule string, at int, v Version) {
	if key := rule + "\x00" + v.key(); !c.seen[key] {
		c.seen[key] = true
		c.all[at].Versions = append(c.all[at].Versions, v)
	}
}

// shares returns the rules that decide for a share of their keys only.
func (s *Set) shares() map[string]bool {
	all := make(map[string]bool)
	for _, r := range s.rules {
		if r.share < wholeShare {
			all[r.name] = true
		}
	}
	return all
}

// changed reports whether some version refuses other callers than before.
func (c *Carried) changed() bool {
	for i := range c.Versions {
		if v := &c.Versions[i]; checkKey(&v.Was) != checkKey(&v.Now) {
			return true
		}
	}
	return false
}

// key returns a text that is different for each version.
func (v *Version) key() string { return checkKey(&v.Was) + " → " + checkKey(&v.Now) }

// checkKey returns what of a check affects the decision, as text.
func checkKey(c *tidegate.Check) string {
	if c.Limit == nil {
		return ""
	}
	l := c.Limit
	text := l.Identity() + " " + l.String() + " " + c.MaxWait.String()
	if l.Ceiling {
		text += " ceiling"
	}
	return text
}
