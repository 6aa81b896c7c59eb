package cli

import (
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// markdown writes the report for a comment on a pull request.
func (r *ciReport) markdown() string {
	var b strings.Builder
	b.WriteString("## Tidegate rules\n\n")
	if len(r.Why) == 0 {
		b.WriteString("Passed.\n")
	} else {
		fmt.Fprintf(&b, "**Failed**: %s.\n", escapeMarkdown(strings.Join(r.Why, "; ")))
	}
	r.markdownLint(&b)
	r.markdownTests(&b)
	if r.Plan != nil {
		b.WriteString("\n" + r.Plan.markdown())
	}
	if r.PlanError != "" {
		fmt.Fprintf(&b, "\n%s\n", escapeMarkdown(r.PlanError))
	}
	return b.String()
}

func (r *ciReport) markdownLint(b *strings.Builder) {
	errs, warnings := r.Problems.Count()
	fmt.Fprintf(b, "\n### Lint\n\n%s, %s.\n", plural(errs, "error"), plural(warnings, "warning"))
	first := true
	for i := range r.Problems {
		p := &r.Problems[i]
		if p.Waived != "" {
			continue
		}
		if first {
			b.WriteString("\n")
			first = false
		}
		text := fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Severity, p.Message)
		if p.Check != "" {
			text += " [" + p.Check + "]"
		}
		fmt.Fprintf(b, "- %s\n", escapeMarkdown(text))
	}
}

func (r *ciReport) markdownTests(b *strings.Builder) {
	b.WriteString("\n### Tests\n\n")
	if len(r.Tests) == 0 {
		b.WriteString("There are none.\n")
	}
	for _, t := range r.Tests {
		if t.report == nil {
			fmt.Fprintf(b, "- **%s cannot be run**: %s\n", escapeMarkdown(t.name), escapeMarkdown(oneLine(t.problems)))
			continue
		}
		fmt.Fprintf(b, "- %s: %s, %d failed\n", escapeMarkdown(t.name), plural(len(t.report.Cases), "case"), t.report.Failed())
		for _, c := range t.report.Cases {
			for _, f := range c.Failures {
				fmt.Fprintf(b, "  - **%s**, line %d: %s\n", escapeMarkdown(c.Name), f.Line, escapeMarkdown(f.Message))
			}
		}
		if len(t.report.Untouched) > 0 {
			fmt.Fprintf(b, "  - touched by no test: %s\n", escapeMarkdown(strings.Join(t.report.Untouched, ", ")))
		}
	}
}

// oneLine returns the first of several problems.
func oneLine(problems diag.List) string {
	if len(problems) == 0 {
		return "nothing is known"
	}
	p := &problems[0]
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}
