package rulefile

import (
	"fmt"
	"strings"
	"testing"
)

// However many combinations a file asks for, no more are made than are allowed: it may come from
// elsewhere, and is refused before it fills the memory.
func TestCombinationsAreBounded(t *testing.T) {
	const ofRule = "the tiers, rows and branches of this rule make more than 10000 combinations"
	const ofAll = "the tiers, rows and branches of all rules make more than 500,000 combinations"
	f := func(name string, room, tiers, rows, branches, rules, most int, want string) {
		t.Helper()
		var b strings.Builder
		b.WriteString("version: 1\nidentify: { plan: jwt.plan, model: body.model, user: jwt.sub }\ntiers:\n")
		for i := range tiers {
			fmt.Fprintf(&b, "  t%d: { quota: 9/month }\n", i)
		}
		b.WriteString("rules:\n")
		for i := range rules {
			fmt.Fprintf(&b, "  - name: r%d\n    per: user\n    limits: { by: model, rows: {", i)
			for j := range rows {
				fmt.Fprintf(&b, " m%d: 1/s,", j)
			}
			b.WriteString(" }, else: 2/s }\n    tier: { from: plan, else: t0 }\n    for:\n")
			for j := range branches {
				fmt.Fprintf(&b, "      - { when: { user: u%d }, quota: 1/day }\n", j)
			}
		}
		d := newDecoder("rules.yaml", Options{})
		d.room = room
		d.readText("rules.yaml", []byte(b.String()), nil)
		file, problems := d.finish()
		made := 0
		for _, r := range file.Rules {
			made += len(r.For)
			if want == ofRule && r.Known != nil {
				t.Errorf("%s: the values of a rule that is refused are collected", name)
			}
		}
		if made > most {
			t.Errorf("%s: %d branches are made, want at most %d", name, made, most)
		}
		if errors := problems.Error(); problems.HasErrors() != (want != "") || !strings.Contains(errors, want) {
			t.Errorf("%s: %.300s, want %q", name, errors, want)
		}
	}
	// Under each of the branches and once for all other requests: a combination for each tier but
	// t0, with each row and without, and one for each row alone; and what was written.
	exactly := func(tiers, rows, branches int) int {
		return branches*((tiers-1)*(rows+1)+rows+1) + (tiers-1)*(rows+1) + rows
	}
	f("few", maxMade, 4, 3, 5, 2, 1_000, "")
	f("the most", maxMade, 50, 49, 3, 1, maxCells, "")
	if n := exactly(50, 49, 3); n != 9_999 {
		t.Errorf("that was meant to be about the bound, and is %d", n)
	}
	f("one branch more", maxMade, 50, 49, 4, 1, maxCells, ofRule)
	f("tiers and branches", maxMade, 300, 1, 300, 1, maxCells, ofRule)
	f("rows and branches", maxMade, 1, 500, 500, 1, maxCells, ofRule)
	f("tiers and rows", maxMade, 500, 500, 1, 1, maxCells, ofRule)
	all := 4 * exactly(5, 4, 5)
	f("of all rules, the most", all, 5, 4, 5, 4, all, "")
	f("of all rules", all-1, 5, 4, 5, 4, all-1, ofAll)
}

// A table may have as many rows as a rule may have combinations, over lines and in braces.
func TestTableOfManyRows(t *testing.T) {
	f := func(rows int, open, sep, shut, want string) {
		t.Helper()
		var src strings.Builder
		src.WriteString("version: 1\nidentify: { m: jwt.m }\nrules:\n  - name: a\n    per: m\n    limits:\n      by: m\n      else: 1/s\n      rows: " + open)
		for i := range rows {
			fmt.Fprintf(&src, "%sm%d: 1/s", sep, i)
			if sep == "" {
				src.WriteString(", ")
			}
		}
		src.WriteString(shut + "\n")
		d := newDecoder("r.yaml", Options{})
		d.readText("r.yaml", []byte(src.String()), nil)
		file, problems := d.finish()
		switch {
		case want != "":
			if !strings.Contains(problems.Error(), want) {
				t.Errorf("%d rows: %.300s", rows, problems.Error())
			}
		case len(file.Rules) != 1 || len(file.Rules[0].For) != rows:
			t.Errorf("%d rows: %.300s", rows, problems.Error())
		}
	}
	const line = "\n        "
	f(maxCells, "", line, "", "")
	f(maxCells, "{", "", "}", "")
	f(maxCells+1, "", line, "", "more than 10000 fields")
	f(maxCells+1, "{", "", "}", "more than 10000 fields")
}
