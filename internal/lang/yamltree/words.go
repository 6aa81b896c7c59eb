package yamltree

import (
	"fmt"
	"strings"
)

// shorten cuts text to its first line and to 40 characters, for a message.
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

// quote returns text in quotes, as YAML that reads as it looks, for a hint. Text longer
// than 200 characters is cut.
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

// colonHint returns the advice for text such as `key:value` or `-item`, where a space is
// missing, and otherwise for any other text.
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
