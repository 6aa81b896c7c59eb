package cli

import (
	"strconv"
	"strings"
	"unicode"

	"tidegate.dev/tidegate/rules"
)

// subjectText returns who is counted: user 42, route POST /posts. Values come from
// callers, so one that could be misread is quoted, and a long one is cut.
func subjectText(subject []rules.SubjectPart) string {
	var all []string
	for _, part := range subject {
		switch {
		case part.Name == "everyone":
			all = append(all, "everyone")
		case part.Value == noAddress:
			all = append(all, part.Name+" unknown")
		default:
			all = append(all, part.Name+" "+valueText(part.Value))
		}
	}
	return strings.Join(all, ", ")
}

const (
	noAddress = "@" // stands for the address of a request that has none
	longValue = 60  // characters of a value that are shown
)

func valueText(value string) string {
	cut := ""
	if r := []rune(value); len(r) > longValue {
		value, cut = string(r[:longValue]), "…"
	}
	odd := func(r rune) bool {
		return !unicode.IsGraphic(r) || r == unicode.ReplacementChar || r == '"' || r == ','
	}
	if value == "" || strings.TrimSpace(value) != value || value == noAddress || strings.ContainsFunc(value, odd) {
		value = strconv.Quote(value)
	}
	return value + cut
}
