package rules

import (
	"net/netip"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// list is a named list of the rule file, compiled for lookups. A literal equals a value as written,
// an address or network also contains addresses, and a * in a glob stands for any text.
type list struct {
	literals map[string]struct{}
	globs    []string
	networks networks
}

func newList(l *rulefile.List) *list {
	made := &list{literals: make(map[string]struct{}, len(l.Tests))}
	var prefixes []netip.Prefix
	for _, t := range l.Tests {
		switch t.Kind {
		case rulefile.TestGlob:
			made.globs = append(made.globs, t.Text)
			continue
		case rulefile.TestPrefix:
			prefixes = append(prefixes, t.Prefix)
		}
		made.literals[t.Text] = struct{}{}
	}
	made.networks = newNetworks(prefixes)
	return made
}

// respelled returns the list with its values normalized in each of the spellings.
func (l *list) respelled(spellings []func(string) string) *list {
	made := &list{literals: make(map[string]struct{}, len(l.literals)), networks: l.networks}
	for text := range l.literals {
		for _, one := range spelled(text, spellings) {
			made.literals[one] = struct{}{}
		}
	}
	for _, glob := range l.globs {
		made.globs = append(made.globs, spelled(glob, spellings)...)
	}
	return made
}

func (l *list) hasText(value string) bool {
	if _, ok := l.literals[value]; ok {
		return true
	}
	return anyGlob(l.globs, value)
}
