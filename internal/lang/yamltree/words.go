package yamltree

import (
	"fmt"
	"strings"
)

// shorten makes text fit into a message.
func shorten(text string) string {
	const most = 40
	if line, _, more := strings.Cut(text, "\n"); more {
		text = line + "…"
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// quote writes text as YAML that reads as it looks.
func quote(text string) string {
	const most = 200
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	if strings.ContainsAny(text, `"\`) {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return `"` + text + `"`
}

// colonHint is the advice for text that should have been `key: value` or `- item`.
func colonHint(text, otherwise string) string {
	if key, value, found := strings.Cut(text, ":"); found && key != "" && value != "" {
		return fmt.Sprintf("write a space after the colon: `%s: %s`", shorten(key), shorten(value))
	}
	if item, found := strings.CutPrefix(text, "-"); found && item != "" {
		return fmt.Sprintf("write a space after the dash: `- %s`", shorten(item))
	}
	return otherwise
}

func trimRight(text []rune) []rune {
	for len(text) > 0 && blank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

// flowSign reports whether r has a meaning of its own inside of { } and [ ].
func flowSign(r rune) bool {
	return r == ',' || r == '{' || r == '}' || r == '[' || r == ']'
}
