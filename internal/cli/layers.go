package cli

import (
	"strings"

	"tidegate.dev/tidegate/rules"
)

// layerNames are files and folders that flags name as layers.
type layerNames struct {
	names []string
	given bool // by a flag: the first one replaces the default
}

func (l *layerNames) String() string { return strings.Join(l.names, ",") }

func (l *layerNames) Set(text string) error {
	if !l.given {
		l.names, l.given = nil, true
	}
	l.names = append(l.names, strings.Split(text, ",")...)
	return nil
}

// onDisk returns files and folders as layers of one rule set.
func onDisk(names []string) []rules.Layer {
	var all []rules.Layer
	for _, name := range names {
		all = append(all, rules.Layer{Name: name})
	}
	return all
}
