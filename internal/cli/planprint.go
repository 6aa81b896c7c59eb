package cli

import (
	"cmp"
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/rulediff"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

var planSigns = map[rulediff.Kind]string{rulediff.Added: "+", rulediff.Removed: "-", rulediff.Changed: "~"}

// print writes the plan for a terminal.
func (p *rulesPlan) print(env *Env) {
	out := func(format string, args ...any) { fmt.Fprintf(env.Stdout, format+"\n", args...) }
	if p.Old != "" {
		out("%s", p.summary())
		for i := range p.Changes {
			c := &p.Changes[i]
			color := map[rulediff.Kind]string{rulediff.Added: green, rulediff.Removed: red}[c.Kind]
			out("%s %s %s", env.paint(color, planSigns[c.Kind]), c.What, strings.Map(graphic, c.Name))
			for _, f := range c.Fields {
				text := strings.Map(graphic, fieldText(c, f))
				if f.Effect == rulediff.Lowered && c.Kind == rulediff.Changed {
					text = env.paint(red, text)
				}
				out("    %s", text)
			}
		}
		for _, c := range p.Counters {
			out("%s", c)
		}
		if len(p.Counters) == 0 {
			out("all counters continue")
		}
	}
	if p.Live == nil {
		return
	}
	out("%s", p.Live.heading())
	for _, line := range p.Live.lines(p.Old == "") {
		out("  %s", strings.Map(graphic, line))
	}
}

// summary counts the changes.
func (p *rulesPlan) summary() string {
	if len(p.Changes) == 0 {
		return "The rules are the same."
	}
	var all []string
	for _, kind := range []rulediff.Kind{rulediff.Added, rulediff.Removed, rulediff.Changed} {
		n, rules := 0, 0
		for i := range p.Changes {
			if c := &p.Changes[i]; c.Kind == kind {
				n++
				if c.What == "rule" {
					rules++
				}
			}
		}
		switch {
		case rules > 0:
			all = append(all, fmt.Sprintf("%s %s", plural(rules, "rule"), kind))
		case n > 0:
			all = append(all, fmt.Sprintf("%d other %s", n, kind))
		}
	}
	text := strings.Join(all, ", ")
	if n := p.lowered(); n > 0 {
		text += "; " + plural(n, "rule") + " with lower limits"
	}
	return text
}

// lowered returns how many rules have lower limits than before.
func (p *rulesPlan) lowered() (n int) {
	for i := range p.Changes {
		if c := &p.Changes[i]; c.What == "rule" && c.Kind == rulediff.Changed && c.Lowers() {
			n++
		}
	}
	return n
}

// fieldText returns a field in words: limits 100/minute → 50/minute (lowered).
func fieldText(c *rulediff.Change, f rulediff.Field) string {
	switch {
	case c.Kind == rulediff.Added || c.What == "list":
		return f.Name + " " + shorten(f.Now)
	case c.What == "setting" && f.Was == "":
		return "is now " + shorten(f.Now)
	}
	text := fmt.Sprintf("%s %s → %s", f.Name, shorten(cmp.Or(f.Was, "(default)")), shorten(cmp.Or(f.Now, "(default)")))
	if f.Effect != "" {
		text += " (" + f.Effect + ")"
	}
	return text
}

// shorten cuts what is too long for a line.
func shorten(text string) string {
	const longest = 120
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return text
}

// heading returns the line above what a server says.
func (l *livePlan) heading() string {
	return fmt.Sprintf("On %s, beside the rules in force (%s):", l.Server, cmp.Or(l.Hash[:min(len(l.Hash), 12)], "without a hash"))
}

// lines returns what a server says of its live keys; if all is set, also which rules and counters
// change.
func (l *livePlan) lines(all bool) (lines []string) {
	if all {
		for _, name := range l.Added {
			lines = append(lines, "+ rule "+name)
		}
		for _, name := range l.Removed {
			lines = append(lines, "- rule "+name)
		}
		lines = append(lines, l.Counters...)
	}
	for i := range l.Keys {
		lines = append(lines, keysLine(&l.Keys[i]))
	}
	if l.Unknown != "" {
		lines = append(lines, l.Unknown)
	}
	if len(lines) == 0 || len(l.Keys) == 0 && l.Unknown == "" {
		lines = append(lines, "no live key is held to other numbers: nobody is newly refused at once")
	}
	return lines
}

// newlyRefused returns how many live keys would newly be refused, at least and at most.
func (l *livePlan) newlyRefused() (atLeast, atMost int64) {
	for i := range l.Keys {
		atLeast, atMost = atLeast+l.Keys[i].AtLeast, atMost+l.Keys[i].AtMost
	}
	return atLeast, atMost
}

// refusedText returns newlyRefused in words: 3 live keys, 0 to 3 live keys.
func (l *livePlan) refusedText() string {
	least, most := l.newlyRefused()
	if least == most {
		return pluralKeys(most)
	}
	return fmt.Sprintf("%d to %s", least, pluralKeys(most))
}

// keysLine returns what would become of the keys of a limit.
func keysLine(k *admin.KeysPlan) string {
	text := fmt.Sprintf("rule %s, %s → %s: %s of %s would newly be refused", k.Rule, k.Was, k.Now, numberText(k), pluralKeys(k.Keys))
	if k.Margin > 0 {
		text += fmt.Sprintf(" (±%d: an estimate from %.1f%% of them)", k.Margin, k.Seen*100)
	}
	if k.Refused > 0 {
		text += fmt.Sprintf(", %d are refused now", k.Refused)
	}
	if k.Freed > 0 {
		text += fmt.Sprintf(", %d would be admitted again", k.Freed)
	}
	if names := namesText(k.Names); names != "" {
		text += ": " + names
	}
	return text
}

func pluralKeys(n int64) string { return plural(int(n), "live key") }

// numberText returns how many keys would newly be refused, or bounds of that.
func numberText(k *admin.KeysPlan) string {
	if k.AtLeast == k.AtMost {
		return fmt.Sprint(k.AtMost)
	}
	return fmt.Sprintf("%d to %d (it depends on the branch or tier of each)", k.AtLeast, k.AtMost)
}

func namesText(names [][]offenders.Part) string {
	var all []string
	for _, parts := range names {
		var one []string
		for _, part := range parts {
			value := valueText(part.Value)
			if part.Hashed {
				value = "#" + value
			}
			one = append(one, strings.TrimSpace(part.Name+" "+value))
		}
		all = append(all, strings.Join(one, ", "))
	}
	return strings.Join(all, "; ")
}
