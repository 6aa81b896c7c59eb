package admin

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxRuleText is how much of a rule is shown.
const maxRuleText = 8 << 10

// ruleText returns the text of the rule at a place, file:line:col: its line, and the following
// lines with more indentation. "" if it is not found.
func ruleText(files map[string][]byte, place string) string {
	file, line, ok := splitPlace(place)
	if !ok {
		return ""
	}
	src, ok := fileAt(files, file)
	lines := strings.Split(string(src), "\n")
	if !ok || line > len(lines) {
		return ""
	}
	first := lines[line-1]
	indent := indentOf(first)
	end := line
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || indentOf(lines[end]) > indent) {
		end++
	}
	text := strings.TrimRight(strings.Join(lines[line-1:end], "\n"), " \n")
	for strings.HasPrefix(lastLine(text), "#") { // a trailing comment belongs to the next rule
		text = strings.TrimRight(text[:len(text)-len(lastLine(text))], " \n")
	}
	return shown(text, maxRuleText)
}

// fileAt returns the text of a file by the name in a place, which may have a layer or a folder before it:
// the longest name that the place ends with, or else the first one with the same last element.
func fileAt(files map[string][]byte, file string) (text []byte, ok bool) {
	if text, ok = files[file]; ok {
		return text, true
	}
	best, ends := "", false
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case strings.HasSuffix(file, "/"+name):
			if !ends || len(name) > len(best) {
				best, ends, ok = name, true, true
			}
		case !ok && path.Base(file) == path.Base(name):
			best, ok = name, true
		}
	}
	return files[best], ok
}

// lastLine returns the last line without its indentation; "" if there is only one line.
func lastLine(text string) string {
	i := strings.LastIndexByte(text, '\n')
	if i < 0 {
		return ""
	}
	return strings.TrimLeft(text[i:], " \n")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func splitPlace(place string) (file string, line int, ok bool) {
	rest, _, found := cutLast(place, ":") // the column
	file, digits, more := cutLast(rest, ":")
	line, err := strconv.Atoi(digits)
	return file, line, found && more && err == nil && line > 0
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
