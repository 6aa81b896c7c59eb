package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// checkInsteadOf reports names in instead_of that are not rules, and cycles: in a cycle
// none of the rules would apply.
func (d *decoder) checkInsteadOf() {
	if !slices.ContainsFunc(d.file.Rules, func(r *Rule) bool { return len(r.InsteadOf) > 0 }) {
		return
	}
	byName := make(map[string]*Rule)
	var names []string
	for _, r := range d.file.Rules {
		if byName[r.Name.Text] == nil { // two of one name have been reported
			byName[r.Name.Text] = r
		}
		names = append(names, r.Name.Text)
	}
	for _, r := range d.file.Rules {
		for _, w := range r.InsteadOf {
			switch {
			case w.Text == r.Name.Text:
				d.fail(w.Pos, "a rule cannot replace itself", "write the name of another rule, or remove it")
			case byName[w.Text] == nil:
				hint := "write the name of a rule of this set"
				if near := d.nearest(w.Text, names); near != "" {
					hint = "did you mean " + diag.Quote(near) + "?"
				}
				d.fail(w.Pos, "there is no rule "+diag.Quote(w.Text), hint)
			}
		}
	}
	c := cycleFinder{d: d, rules: byName, state: make(map[*Rule]progress)}
	for _, r := range d.file.Rules {
		c.visit(r, nil)
	}
}

// cycleFinder reports rules that replace each other, by depth-first search.
type cycleFinder struct {
	d     *decoder
	rules map[string]*Rule
	state map[*Rule]progress
}

// progress is how far the search is with a rule; 0 means not visited yet.
type progress uint8

const (
	onPath progress = 1 + iota
	done
)

// visit searches the rules that r replaces. path are the names of the rules that led to r.
func (c *cycleFinder) visit(r *Rule, path []string) {
	if c.state[r] == done {
		return
	}
	c.state[r] = onPath
	path = append(path, r.Name.Text)
	for _, w := range r.InsteadOf {
		next := c.rules[w.Text]
		if next == nil || next == r {
			continue
		}
		if c.state[next] != onPath {
			c.visit(next, path)
			continue
		}
		loop := append(slices.Clone(path[slices.Index(path, w.Text):]), w.Text)
		if most := 8; len(loop) > most {
			loop = slices.Concat(loop[:most-2], []string{"…"}, loop[len(loop)-1:])
		}
		c.d.fail(w.Pos, "rules replace each other: "+strings.Join(loop, " → ")+", so none of them would apply", "take one of these out of `instead_of`")
	}
	c.state[r] = done
}
