package lint

import (
	"slices"
	"sort"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// waiver is a waiver of the file, and whether it has silenced anything.
type waiver struct {
	*rulefile.Waiver
	used bool
}

// waiverKey identifies waivers by check and file. Waivers of rules and of the whole file are kept
// apart: those of rules do not overlap and can be searched by position.
type waiverKey struct {
	check, file string
	whole       bool
}

func (p *pass) addWaiver(written *rulefile.Waiver) {
	w := &waiver{Waiver: written}
	key := waiverKey{w.Check.Text, w.Check.Pos.File, w.Rule == ""}
	p.waivers = append(p.waivers, w)
	p.waive[key] = append(p.waive[key], w)
}

// waiver returns the waiver that silences the current check at pos, one of a rule before one of the
// file; nil if there is none.
func (p *pass) waiver(pos diag.Pos) *waiver {
	if len(p.waivers) == 0 || p.check == "" {
		return nil
	}
	inRules := p.waive[waiverKey{p.check, pos.File, false}] // in the order of the file
	after := sort.Search(len(inRules), func(i int) bool {
		from := inRules[i].In.From
		return from.Line > pos.Line || from.Line == pos.Line && from.Col > pos.Col
	})
	if after > 0 && inRules[after-1].In.Holds(pos) {
		return inRules[after-1]
	}
	if whole := p.waive[waiverKey{p.check, pos.File, true}]; len(whole) > 0 {
		return whole[0]
	}
	return nil
}

// unknownWaivers returns an error for each waiver of a check that does not exist.
func unknownWaivers(f *rulefile.File) (problems diag.List) {
	var names []string
	for _, c := range Checks {
		names = append(names, c.Name)
	}
	for _, w := range slices.Concat(f.Waive, domainWaivers(domainsOf(f))) {
		if slices.Contains(names, w.Check.Text) {
			continue
		}
		hint := "`tidegate lint --checks` lists them"
		if near := diag.Nearest(w.Check.Text, names); near != "" {
			hint = "did you mean " + diag.Quote(near) + "?"
		}
		problems.Add(f.Problem(w.Check.Pos, diag.Error, "there is no check "+diag.Quote(w.Check.Text), hint))
	}
	return problems
}
