package cli

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulediff"
)

// markdown writes the plan for a pull request.
func (p *rulesPlan) markdown() string {
	var b strings.Builder
	if p.Old != "" {
		fmt.Fprintf(&b, "### Plan\n\n%s\n", escapeMarkdown(p.summary()))
		p.markdownChanges(&b)
		b.WriteString("\n**Counters**: ")
		if len(p.Counters) == 0 {
			b.WriteString("all go on.\n")
		} else {
			b.WriteString("all others go on.\n\n")
		}
		for _, c := range p.Counters {
			fmt.Fprintf(&b, "- %s\n", escapeMarkdown(c.String()))
		}
	}
	if p.Live == nil {
		return b.String()
	}
	_, most := p.Live.newlyRefused()
	fmt.Fprintf(&b, "\n### Live keys\n\n**%s that %s admitted now would be refused.** %s\n\n", p.Live.refusedText(), areIs(most), escapeMarkdown(p.Live.heading()))
	for _, line := range p.Live.lines(p.Old == "") {
		fmt.Fprintf(&b, "- %s\n", escapeMarkdown(line))
	}
	return b.String()
}

func areIs(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func (p *rulesPlan) markdownChanges(b *strings.Builder) {
	if len(p.Changes) == 0 {
		return
	}
	b.WriteString("\n| | | change |\n|---|---|---|\n")
	for i := range p.Changes {
		c := &p.Changes[i]
		var fields []string
		for _, f := range c.Fields {
			text := escapeMarkdown(fieldText(c, f))
			if f.Effect == rulediff.Lowered && c.Kind == rulediff.Changed {
				text = "**" + text + "**"
			}
			fields = append(fields, text)
		}
		fmt.Fprintf(b, "| %s | %s %s | %s |\n", c.Kind, c.What, escapeMarkdown(c.Name), strings.Join(fields, "<br>"))
	}
}

// escapeMarkdown writes what somebody else wrote so that it is shown as it is: a name of a
// rule or a value of a caller must not become a link or a mention.
func escapeMarkdown(text string) string {
	var b strings.Builder
	for _, r := range strings.Map(graphic, text) {
		switch {
		case strings.ContainsRune("\\`*_{}[]()#+!|~<>&", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '@':
			b.WriteString("@\u200b") // nobody is notified
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
