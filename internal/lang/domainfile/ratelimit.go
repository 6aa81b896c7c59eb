package domainfile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// rateLimit reads what is below rate_limit; nil if it cannot be used.
func (r *reader) rateLimit(f yamltree.Field) *RateLimit {
	o, ok := r.open(f.Value, &ratePlace)
	if !ok {
		return nil
	}
	l := &RateLimit{Pos: f.Key.Pos}
	if f, has := o.field("name"); has {
		l.Name.Text, _ = r.text(f, "`name`")
		l.Name.Pos = f.Value.Pos
	}
	if f, has := o.field("replaces"); has {
		r.replaces(f, l)
	}
	if l.Unlimited = r.yes(o, "unlimited"); l.Unlimited {
		r.besideUnlimited(o)
		return l
	}
	if f, has := o.field("tidegate"); has {
		r.own(f, l)
	}
	r.rate(o, l)
	return l
}

// besideUnlimited reports what cannot be beside `unlimited: true`.
func (r *reader) besideUnlimited(o object) {
	for _, word := range []string{"unit", "tidegate"} {
		if _, ok := o.field(word); ok {
			r.fail(o.key(word), diag.Quote(word)+" means nothing beside `unlimited: true`", "remove one of them")
		}
	}
}

const unitHint = "write `unit: minute`; the units are second, minute, hour, day, week, month and year"

// rate reads unit and requests_per_unit.
func (r *reader) rate(o object, l *RateLimit) {
	f, has := o.field("unit")
	if !has {
		switch {
		case o.misspelt["unit"]:
		case !l.Own.limits:
			r.fail(l.Pos, "the limit has no unit", unitHint)
		case o.has("requests_per_unit"):
			r.fail(o.key("requests_per_unit"), "`requests_per_unit` means nothing without `unit`", unitHint+", or remove `requests_per_unit`")
		}
		return
	}
	l.RequestsPos = f.Value.Pos
	if word, ok := r.text(f, "`unit`"); ok {
		l.Unit = r.unit(word, f.Value.Pos)
	}
	if f, has := o.field("requests_per_unit"); has {
		l.Requests, l.RequestsPos, l.HasRequests = r.count(f), f.Value.Pos, true
	}
}

// unit returns a word of Units, in any case.
func (r *reader) unit(word string, pos diag.Pos) string {
	unit := strings.ToLower(word)
	if slices.Contains(Units, unit) {
		return unit
	}
	hint := unitHint
	if near := diag.Nearest(strings.TrimSuffix(unit, "s"), Units); near != "" {
		hint = "did you mean " + diag.Quote(near) + "? the units are second, minute, hour, day, week, month and year"
	}
	r.fail(pos, "unknown unit "+diag.Quote(word), hint)
	return ""
}

// replaces reads the names of limits that l replaces.
func (r *reader) replaces(f yamltree.Field, l *RateLimit) {
	const hint = "write `replaces: [{ name: other }]`"
	if f.Value.Kind != yamltree.List {
		r.fail(f.Value.Pos, "`replaces` is a list, and this is "+f.Value.What(), hint)
		return
	}
	for _, n := range f.Value.Items {
		o, ok := r.open(n, &replacesPlace)
		if !ok {
			continue
		}
		name := Word{Pos: o.key("name")}
		if f, has := o.field("name"); has {
			name.Text, ok = r.text(f, "`name`")
			name.Pos = f.Value.Pos
		}
		switch {
		case !ok || o.misspelt["name"]:
		case name.Text == "":
			r.fail(name.Pos, "an item of `replaces` has no name", hint)
		case name.Text == l.Name.Text:
			r.fail(name.Pos, "a limit cannot replace itself: its name is "+diag.Quote(name.Text), "name the limit that is to be replaced")
		default:
			l.Replaces = append(l.Replaces, name)
		}
	}
}
