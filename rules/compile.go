package rules

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// compiler turns a file without errors into a Set.
type compiler struct {
	config   Config
	file     *rulefile.File
	ids      *identities
	lists    map[string]*list
	files    []string
	at       diag.Pos // the rule that is being compiled
	limits   int      // made so far, those of all branches and ways to count
	problems diag.List
}

// maxLimits bounds what a file is compiled to: limits × branches × ways to count can
// be far more than was written.
const maxLimits = 500_000

// compile returns the Set, and what is wrong; the Set is nil if that is more than
// warnings.
func compile(f *rulefile.File, config Config) (*Set, diag.List) {
	c := &compiler{
		config: config, file: f, ids: newIdentities(f),
		lists: make(map[string]*list), files: slices.Clone(f.Files),
	}
	for i := range f.Lists {
		c.lists[f.Lists[i].Name.Text] = newList(&f.Lists[i])
	}
	s := &Set{config: config, ids: c.ids, instances: f.Instances, verifier: c.newVerifier(), keys: c.newKeys()}
	for i := range f.Exempt {
		w := &f.Exempt[i]
		s.entries = append(s.entries, entry{guard: c.guard(w.When, w.Unless), patterns: w.Match, exempt: w})
	}
	for _, w := range f.Rules {
		r := c.rule(w)
		s.rules = append(s.rules, r)
		s.entries = append(s.entries, entry{guard: c.guard(w.When, w.Unless), patterns: w.Match, rule: r})
	}
	c.warnUntrusted(s.keys)
	if c.problems.HasErrors() {
		return nil, c.problems
	}
	s.replace()
	s.index = newIndex(s.entries, config.IgnoreCase)
	s.files, s.layers, s.headers = c.files, f.Layers, headersOf(c.ids, s.keys)
	s.denied = answer(f, &rulefile.Rule{Deny: true})
	c.ids.file, c.ids.unnamed = nil, nil // of no more use
	s.states.New = func() any { return s.newState() }
	return s, c.problems
}

// replace tells each rule which others take its place.
func (s *Set) replace() {
	byName := make(map[string]*rule)
	for _, r := range s.rules {
		byName[r.name] = r
	}
	for i := range s.entries {
		r := s.entries[i].rule
		if r == nil {
			continue
		}
		for _, w := range r.written.InsteadOf {
			if other := byName[w.Text]; other != nil {
				other.replacers = append(other.replacers, int32(i))
			}
		}
	}
}

// fail adds an error.
func (c *compiler) fail(pos diag.Pos, message, hint string) {
	c.problems.Add(c.file.Problem(pos, diag.Error, message, hint))
}

// found adds err, if it is one.
func (c *compiler) found(pos diag.Pos, err error) {
	if err != nil {
		c.fail(pos, err.Error(), "")
	}
}

// must adds err, if it is one, as a mistake of the rule.
func (c *compiler) must(l *tidegate.Limit, err error) *tidegate.Limit {
	c.found(c.at, err)
	return l
}
