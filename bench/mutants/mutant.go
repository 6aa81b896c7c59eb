package main

import (
	"fmt"
	"slices"
	"strings"
)

// mutant is a small edit of a source file that breaks an algorithm.
type mutant struct {
	algorithm, file string
	breaks          string // what it does wrong
	after           string // the old text is looked for behind this one
	old, new        string
}

func (m mutant) name() string { return m.algorithm + ": " + m.breaks }

func (m mutant) lua() bool { return strings.HasSuffix(m.file, ".lua") }

// parse reads mutants, which empty lines divide:
//
//	algorithm file
//	what it does wrong
//	@ text that stands before (optional)
//	- the old text
//	+ the new text
//
// Lines that start with # are for readers.
func parse(text string) ([]mutant, error) {
	var all []mutant
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(l string) bool { return l == "" || l[0] == '#' })
		if len(lines) == 0 {
			continue
		}
		m, err := parseOne(lines)
		if err != nil {
			return nil, fmt.Errorf("mutants.txt: %w in:\n%s", err, block)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseOne(lines []string) (m mutant, err error) {
	if len(lines) < 4 {
		return m, fmt.Errorf("want a head, a sentence, an old text and a new one")
	}
	var ok bool
	if m.algorithm, m.file, ok = strings.Cut(lines[0], " "); !ok || !slices.Contains(algorithms, m.algorithm) {
		return m, fmt.Errorf("the head %q names no algorithm and file", lines[0])
	}
	m.breaks = lines[1]
	for _, l := range lines[2:] {
		mark, rest, _ := strings.Cut(l, " ")
		switch mark {
		case "@":
			m.after = rest
		case "-":
			m.old = rest
		case "+":
			m.new = rest
		default:
			return m, fmt.Errorf("a line that starts with %q", mark)
		}
	}
	if m.old == "" || m.old == m.new {
		return m, fmt.Errorf("nothing is changed")
	}
	return m, nil
}

// apply edits source. The old text, behind the one it is looked for after, must be
// there; without such a text it must be there once.
func (m mutant) apply(source string) (string, error) {
	from := strings.Index(source, m.after)
	if from < 0 {
		return "", fmt.Errorf("%s has no %q", m.file, m.after)
	}
	at := strings.Index(source[from:], m.old)
	switch {
	case at < 0:
		return "", fmt.Errorf("%s has no %q there", m.file, m.old)
	case m.after == "" && strings.Count(source, m.old) > 1:
		return "", fmt.Errorf("%s has %q more than once", m.file, m.old)
	}
	at += from
	return source[:at] + m.new + source[at+len(m.old):], nil
}
