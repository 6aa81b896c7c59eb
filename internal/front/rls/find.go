package rls

import (
	"unsafe"

	"tidegate.dev/tidegate/rules/envoy"
)

// find finds what the descriptors are held to, and makes their keys.
func (c *call) find(domain *envoy.Domain) error {
	replacing := false
	for i := range c.descriptors {
		d := &c.descriptors[i]
		d.decision.OK = true
		d.cost = c.costOf(d)
		if d.limit.set {
			rule, err := domain.Override(d.limit.requests, d.limit.unitOf())
			if err != nil {
				return invalid("descriptor %d: %v", i, err)
			}
			d.rule = rule
		} else {
			d.rule = domain.Find(d.entries)
		}
		replacing = replacing || d.rule != nil && len(d.rule.Replaces) > 0
	}
	if replacing {
		c.replace()
	}
	c.makeKeys()
	return nil
}

// replace marks the descriptors whose rules are replaced by those of others.
func (c *call) replace() {
	for i := range c.descriptors {
		by := c.descriptors[i].rule
		if by == nil {
			continue
		}
		for _, name := range by.Replaces {
			for j := range c.descriptors {
				if d := &c.descriptors[j]; d.rule != nil && d.rule.Name == name && !d.rule.Unlimited {
					d.replaced = true
				}
			}
		}
	}
}

// counted reports whether a descriptor has a counter to ask.
func (d *descriptor) counted() bool {
	return d.rule != nil && !d.replaced && !d.rule.Unlimited && len(d.rule.Limits) > 0
}

// makeKeys makes the keys of all counters, in memory of the call.
func (c *call) makeKeys() {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		if !d.counted() {
			continue
		}
		from := len(c.keys)
		c.keys = d.rule.AppendKey(c.keys, d.entries)
		d.key = text(c.keys[from:]) // stays valid when keys grow: the old memory is kept by it
	}
}

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
