package rules

import (
	"cmp"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Load reads a rule file, or a folder of them, and all it includes. The error is
// a [*LoadError] with everything that is wrong: a file is used whole or not at
// all. Warnings do not prevent that; see [Set.Warnings].
func Load(name string, c Config) (*Set, error) { return LoadLayers([]Layer{{Name: name}}, c) }

// Layer is one of several sources of rules that are joined: a file or folder on disk, by its Name,
// or files in memory, which only this layer can refer to.
type Layer = rulefile.Layer

// LoadLayers is Load for several layers. The same name in two of them is an error, unless the later
// one says `replace: true`.
func LoadLayers(layers []Layer, c Config) (*Set, error) {
	f, problems := rulefile.Join(layers, c.options())
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.Name
	}
	names = slices.Compact(names) // a source may itself have several layers
	return newSet(strings.Join(names, ", "), f, problems, c)
}

// Parse is Load for a rule file in memory; problems call it name, and its includes are found
// relative to that.
func Parse(name string, src []byte, c Config) (*Set, error) {
	f, problems := rulefile.Parse(name, src, c.options())
	return newSet(name, f, problems, c)
}

func (c *Config) options() rulefile.Options {
	return rulefile.Options{ReadFile: c.ReadFile, Glob: c.Glob, Now: c.now}
}

func newSet(name string, f *rulefile.File, problems diag.List, c Config) (*Set, error) {
	domains, wrong := c.domains(f)
	if len(wrong) > 0 {
		problems.Add(wrong...)
		problems = problems.Bounded()
		problems.Sort()
	}
	if f == nil || problems.HasErrors() {
		return nil, &LoadError{Name: name, Problems: problems}
	}
	set, more := compile(f, c)
	problems.Add(more...)
	problems = problems.Bounded()
	problems.Sort()
	if set == nil {
		return nil, &LoadError{Name: name, Problems: problems}
	}
	set.warnings, set.domains = problems, domains
	set.blind = make(map[Door]diag.List)
	for _, door := range Doors() {
		set.blind[door] = f.Blind(rulefile.Door(door))
	}
	return set, nil
}

// LoadError has all problems of a rule file, or of a file of API keys.
type LoadError struct {
	Name     string // of the file or folder
	Problems Problems
	what     string // "API keys"; "" means rules
}

// Error shows every problem with its line and what to write instead.
func (e *LoadError) Error() string {
	return "load " + cmp.Or(e.what, "rules") + " " + e.Name + ":\n" + e.Problems.Error()
}
