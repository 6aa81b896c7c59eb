package rulefile

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// Refers names the very files that Read asks for, whatever the spelling.
func TestRefersNamesWhatReadAsksFor(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		const main = "team/rules.yaml"
		var asked []string
		Read(main, Options{
			ReadFile: func(name string) ([]byte, error) {
				if name == filepath.FromSlash(main) {
					return []byte(src), nil
				}
				asked = append(asked, filepath.ToSlash(name))
				return []byte("# nothing\n"), nil
			},
			Glob: func(pattern string) ([]string, error) {
				asked = append(asked, "pattern "+filepath.ToSlash(pattern))
				return nil, nil
			},
		})
		var refers []string
		for _, r := range Refers(main, []byte(src)) {
			name := r.Name
			if r.Pattern {
				name = "pattern " + name
			}
			refers = append(refers, name)
		}
		slices.Sort(asked)
		slices.Sort(refers)
		refers = slices.Compact(refers)
		if !slices.Equal(asked, slices.Compact(refers)) {
			t.Errorf("Read asks for %q, Refers names %q:\n%s", asked, refers, src)
		}
		slices.Sort(want)
		if !slices.Equal(refers, want) {
			t.Errorf("%q, want %q:\n%s", refers, want, src)
		}
	}
	const rules = "\nrules: [{ name: api, per: ip, limits: 1/second }]\n"
	f("version: 1" + rules)
	f("version: 1\ninclude: more.yaml"+rules, "team/more.yaml")
	f("version: 1\ninclude: [more.yaml, ' ../base.yaml ', /etc/rules.yaml, './more.yaml']"+rules, "team/more.yaml", "base.yaml", "/etc/rules.yaml")
	f("version: 1\ninclude:\n  - \"a b.yaml\"\n  - rules.d/*.yaml\n"+rules, "team/a b.yaml", "pattern team/rules.d/*.yaml")
	f("version: 1\ninclude: https://example.com/x.yaml" + rules)
	f("version: 1\ninclude:\nlists:" + rules)
	f("version: 1\nlists: { a: [1.2.3.4], b: file b.txt, c: 'file   sub/c d.txt ', d: nonsense }"+rules, "team/b.txt", "team/sub/c d.txt")
	f(`{"version": 1, "include": ["more.yaml"], "lists": {"b": "file b.txt"}, "rules": [{"name": "api", "per": "ip", "limits": "1/second"}]}`, "team/more.yaml", "team/b.txt")
	f("domain: x\ndescriptors: []\ninclude: more.yaml\n")
	f("")
	f("[")
}

func TestRefersTellsRulesFromLists(t *testing.T) {
	got := fmt.Sprint(Refers("rules.yaml", []byte("include: a.yaml\nlists: { b: file b.txt, c: { file: c.txt, replace: true } }\n")))
	if want := "[{a.yaml false true} {b.txt false false} {c.txt false false}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
