package rulefile

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Domain is a file of another language that may be among rule files: a configuration of
// envoyproxy/ratelimit, which package domainfile reads.
type Domain struct {
	Name string
	Text []byte
}

// isDomain reports whether a file is such a configuration: one with `domain` or `descriptors`
// at its root, also if it has mistakes that keep it from being parsed.
func isDomain(root *yamltree.Node, lines diag.Lines) bool {
	if root == nil {
		return slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "domain:") || strings.HasPrefix(line, "descriptors:")
		})
	}
	return slices.ContainsFunc(root.Fields, func(f yamltree.Field) bool {
		return f.Key.Value == "domain" || f.Key.Value == "descriptors"
	})
}
