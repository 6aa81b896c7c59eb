package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/lint"
)

// A folder of a thousand rules is looked at while somebody waits.
func BenchmarkRun(b *testing.B) {
	var src strings.Builder
	src.WriteString("version: 1\nidentify: { user: jwt.sub, role: jwt.role, device: client header X-Device }\nrules:\n")
	for i := range 1000 {
		per := []string{"user", "ip", "device", "[user, route]"}[i%4]
		fmt.Fprintf(&src, "  - { name: r%d, match: [/a%d/, GET /b/c%d], per: %s, when: { role: [x, y%d] }, limits: [10/second, 100/minute] }\n", i, i, i, per, i)
	}
	f, problems := rulefile.Parse("rules.yaml", []byte(src.String()), rulefile.Options{})
	if problems.HasErrors() {
		b.Fatal(problems)
	}
	for b.Loop() {
		lint.Run(f, lint.Options{})
	}
}
