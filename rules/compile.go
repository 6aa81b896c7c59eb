package rules

import (
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// compiler turns a file without errors into a Set.
type compiler struct {
	config         Config
	file           *rulefile.File
	ids            *identities
	lists          map[string]*list
	files          []string
	at             diag.Pos // the rule that is being compiled
	limits         int      // made so far, over all branches and scopes
	answerDefaults *answerDefaults
	interned       interned
	limiter        *limiter // of the rule that is being compiled
	problems       diag.List
}

// maxLimits bounds what a file is compiled to: limits × branches × scopes can be far more than was
// written.
const maxLimits = 500_000

// compile returns the Set, and what is wrong; the Set is nil if that is more than
// warnings.
func compile(f *rulefile.File, config Config) (*Set, diag.List) {
	c := &compiler{
		config: config, file: f, ids: newIdentities(f),
		lists: make(map[string]*list), files: slices.Clone(f.Files),
		answerDefaults: &answerDefaults{f.Headers, f.Respond}, interned: newInterned(),
	}
	for i := range f.Lists {
		c.lists[f.Lists[i].Name.Text] = newList(&f.Lists[i])
	}
	s := &Set{config: config, ids: c.ids, instances: f.Instances, verifier: c.newVerifier(), keys: c.newKeys()}
	s.rules = make([]*rule, len(f.Rules))
	s.entries = make([]entry, 0, len(f.Classes)+len(f.Exempt)+len(f.Rules))
	for i := range f.Classes {
		w := &f.Classes[i]
		s.classes = append(s.classes, w.Name.Text)
		s.entries = append(s.entries, entry{conds: c.whenUnless(w.When, w.Unless), patterns: texts(w.Match)})
	}
	for i := range f.Exempt {
		w := &f.Exempt[i]
		s.entries = append(s.entries, entry{conds: c.whenUnless(w.When, w.Unless), patterns: texts(w.Match), exempt: w})
	}
	for i, w := range f.Rules {
		s.rules[i] = c.rule(w)
		s.entries = append(s.entries, entry{conds: c.whenUnless(w.When, w.Unless), patterns: texts(w.Match), rule: s.rules[i]})
	}
	s.shed = c.shedder(f.Shed, ShedRule, rulefile.Enforce)
	c.warnUntrusted(s.keys)
	if c.problems.HasErrors() {
		return nil, c.problems
	}
	s.replace(f)
	s.linkShedders()
	s.index = newIndex(s.entries, patternsOf(f), config.IgnoreCase)
	s.files, s.layers, s.headers = c.files, f.Layers, headersOf(c.ids, s.keys)
	s.denied = c.answerDefaults.answer(nil, true)
	c.ids.file, c.ids.unnamed = nil, nil // of no more use
	s.states.New = func() any { return s.newState() }
	return s, c.problems
}

// replace records in each rule the rules that are written `instead_of` it.
func (s *Set) replace(f *rulefile.File) {
	byName := make(map[string]*rule, len(s.rules))
	for _, r := range s.rules {
		byName[r.name] = r
	}
	for i, w := range f.Rules {
		for _, name := range w.InsteadOf {
			if other := byName[name.Text]; other != nil {
				x := other.own()
				x.replacers = append(x.replacers, int32(len(f.Classes)+len(f.Exempt)+i))
			}
		}
	}
}

// patternsOf returns the patterns of f by entry.
func patternsOf(f *rulefile.File) [][]rulefile.Pattern {
	all := make([][]rulefile.Pattern, 0, len(f.Classes)+len(f.Exempt)+len(f.Rules))
	for i := range f.Classes {
		all = append(all, f.Classes[i].Match)
	}
	for i := range f.Exempt {
		all = append(all, f.Exempt[i].Match)
	}
	for _, w := range f.Rules {
		all = append(all, w.Match)
	}
	return all
}

// texts returns patterns as they are written.
func texts(patterns []rulefile.Pattern) []string {
	if len(patterns) == 0 {
		return nil
	}
	all := make([]string, len(patterns))
	for i := range patterns {
		all[i] = patterns[i].Text
	}
	return all
}

// fail adds an error.
func (c *compiler) fail(pos diag.Pos, message, hint string) {
	c.problems.Add(c.file.Problem(pos, diag.Error, message, hint))
}

// found adds err as an error, unless it is nil.
func (c *compiler) found(pos diag.Pos, err error) {
	if err != nil {
		c.fail(pos, err.Error(), "")
	}
}

// must returns l, and adds err as an error of the rule, unless it is nil.
func (c *compiler) must(l *tidegate.Limit, err error) *tidegate.Limit {
	c.found(c.at, err)
	return l
}
