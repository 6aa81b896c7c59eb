package domainfile

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// stepKey is what may be at one level once.
type stepKey struct{ key, value string }

// descriptors adds a list of descriptors to those that are beside them, below path.
func (r *reader) descriptors(f yamltree.Field, beside []*Descriptor, path []*Descriptor) []*Descriptor {
	const hint = "write a list: `descriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 100 } }]`"
	if f.Value.Kind != yamltree.List {
		r.fail(f.Value.Pos, "`descriptors` is a list, and this is "+f.Value.What(), hint)
		return beside
	}
	if len(path) >= maxDepth {
		r.fail(f.Key.Pos, fmt.Sprintf("descriptors are more than %d deep", maxDepth), "remove levels: no request has so many entries")
		return beside
	}
	seen := make(map[stepKey]diag.Pos)
	for _, d := range beside {
		seen[stepKey{d.Key.Text, d.Value.Text}] = d.Key.Pos
	}
	for _, n := range f.Value.Items {
		d := r.descriptor(n, path)
		if d == nil {
			continue
		}
		key := stepKey{d.Key.Text, d.Value.Text}
		if before, twice := seen[key]; twice {
			r.fail(d.Key.Pos, "duplicate descriptor: "+diag.Quote(r.pathTo(path, d))+" is already at "+where(before),
				"remove one of them, or put what is below both into one")
			continue
		}
		seen[key] = d.Key.Pos
		beside = append(beside, d)
	}
	return beside
}

// descriptor reads one descriptor with all that is below it; nil if what it matches is unclear.
func (r *reader) descriptor(n *yamltree.Node, path []*Descriptor) *Descriptor {
	o, ok := r.open(n, &descriptorPlace)
	if !ok {
		return nil
	}
	d := r.matches(o)
	if d == nil {
		return nil
	}
	d.Shadow, d.ShadowPos = r.yes(o, "shadow_mode"), o.key("shadow_mode")
	d.Quota, d.QuotaPos = r.yes(o, "quota_mode"), o.key("quota_mode")
	d.Detailed, d.Metric = r.yes(o, "detailed_metric"), r.yes(o, "value_to_metric")
	if f, ok := o.field("metadata"); ok {
		d.Metadata = r.metadata(f)
	}
	d.Empty = o.empty["rate_limit"]
	if f, ok := o.field("rate_limit"); ok {
		d.Limit = r.rateLimit(f)
	}
	if f, ok := o.field("descriptors"); ok {
		d.Descriptors = r.descriptors(f, nil, append(slices.Clone(path), d))
	}
	return d
}

// matches reads what a descriptor matches.
func (r *reader) matches(o object) *Descriptor {
	f, ok := o.field("key")
	if !ok {
		if !o.misspelt["key"] {
			hint := "write `key: user`"
			if _, limit := o.field("rate_limit"); limit {
				hint = besideKey
			}
			r.fail(o.at, "the descriptor has no key", hint)
		}
		return nil
	}
	d := new(Descriptor)
	d.Key.Text, ok = r.text(f, "`key`")
	d.Key.Pos, d.Value.Pos = f.Value.Pos, f.Value.Pos
	if ok && d.Key.Text == "" {
		r.fail(f.Value.Pos, "the key of the descriptor is empty", "write `key: user`")
		ok = false
	}
	if f, has := o.field("value"); has {
		text, fine := r.text(f, "`value`")
		d.Value, ok = Word{text, f.Value.Pos}, ok && fine
	}
	if d.Shared = r.yes(o, "share_threshold"); d.Shared && ok && !d.HasStar() {
		r.fail(o.key("share_threshold"), "`share_threshold` is about all values that match a pattern, and this descriptor has no pattern",
			"write a value with a star, such as `value: files/*`, or remove `share_threshold`")
	}
	if !ok {
		return nil
	}
	return d
}

// HasStar reports whether the value is a pattern.
func (d *Descriptor) HasStar() bool { return strings.Contains(d.Value.Text, "*") }

func (r *reader) pathTo(path []*Descriptor, d *Descriptor) string {
	return Path(r.domain.Name.Text, append(slices.Clone(path), d)...)
}

// Path returns the metric key of envoyproxy/ratelimit for a descriptor, by which people know it.
func Path(domain string, path ...*Descriptor) string {
	var b strings.Builder
	b.WriteString(domain)
	for _, d := range path {
		b.WriteString("." + d.Key.Text)
		if d.Value.Text != "" {
			b.WriteString("_" + d.Value.Text)
		}
	}
	return b.String()
}
