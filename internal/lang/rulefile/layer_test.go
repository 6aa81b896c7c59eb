package rulefile

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Three layers: what says `replace` takes the place of what an earlier one has, where it
// stands; all else is joined.
func TestLayersReplace(t *testing.T) {
	o := inFolder("testdata/good")
	read := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		text, err := read(name)
		if name == "words.yaml" {
			text = append(text, "\nreplace: defaults\n"...)
		}
		return text, err
	}
	f, problems := Join([]Layer{{Name: "full.yaml"}, {Name: "words.yaml"}, {Name: "over.yaml"}}, o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	base, words := good(t, "full.yaml"), good(t, "words.yaml")
	want(t, "rules", names(f), names(base)+" "+names(words)+" of-roles")
	want(t, "limit of sign-ups", f.rule(t, "sign-ups").Terms.Limits.All[0].Text, "1/minute")
	want(t, "instances", f.Instances, 9)
	id, _ := f.Identity("role")
	want(t, "role", id.Sources[0].Text, "client header X-Role")
	want(t, "lists", len(f.Lists), len(base.Lists)+len(words.Lists)+1)
	want(t, "partners", f.Lists[0].Values[0].Text, "198.51.100.0/24")
	want(t, "blocked", len(f.Lists[len(f.Lists)-1].Values), 3)
	want(t, "limit of the tier free", f.Tiers[0].Terms.Limits.All[0].Text, "10/minute")
	want(t, "tier that rules take", f.rule(t, "tiered").Terms.Limits.All[0].Text, "10/minute")
	want(t, "what the tier no longer says", f.rule(t, "tiered").Terms.Quota == nil, true)
	want(t, "files of layers", f.Layers, [][]string{base.Files, words.Files, {"over.yaml", "banned.txt"}})
	want(t, "Name", f.Name, "full.yaml, words.yaml, over.yaml")
}

// Each kind of name, in two layers: an error that names both places, unless the later layer
// says `replace`; within a layer, `replace` changes nothing.
func TestNamesInTwoLayers(t *testing.T) {
	const head, rule = "version: 1\n", "rules: [{ name: %, per: ip, limits: 5/minute }]\n"
	for _, c := range []struct{ name, plain, replacing, told, hint string }{
		{"rule", "rules: [{ name: x, per: ip, limits: 5/minute }]\n", "rules: [{ name: x, per: ip, limits: 6/minute, replace: true }]\n", "rule `x` is already defined at a: r.yaml:2", "`replace: true`"},
		{"deny", "rules: [{ name: x, deny: true }]\n", "rules: [{ name: x, deny: true, replace: true }]\n", "rule `x` is already defined at a: r.yaml:2", "`replace: true`"},
		{"list", "lists: { x: [a] }\n", "lists: { x: { values: [b], replace: true } }\n", "list `x` is already defined at a: r.yaml:2", "`x: { values: […], replace: true }`"},
		{"list of a file", "lists: { x: file l.txt }\n", "lists: { x: { file: l.txt, replace: true } }\n", "list `x` is already defined at a: r.yaml:2", "`x: { values: […], replace: true }`"},
		{"identity", "identify: { x: jwt.sub }\n", "identify: { x: { from: [jwt.sub, ip], replace: true } }\n", "`x` is already defined at a: r.yaml:2", "`x: { from: …, replace: true }`"},
		{"tier", "tiers: { x: { limits: 5/minute } }\n", "tiers: { x: { limits: 6/minute, replace: true } }\n", "tier `x` is already defined at a: r.yaml:2", "`replace: true`"},
		{"defaults", "defaults: { on_full: evict }\n", "defaults: { on_full: refuse }\nreplace: defaults\n", "`defaults` is already set at a: r.yaml:2", "`replace: [defaults]`"},
		{"respond", "respond: { status: 503 }\n", "respond: { status: 429 }\nreplace: [respond]\n", "`respond` is already set at a: r.yaml:2", "`replace: [respond]`"},
		{"headers", "headers: { dialect: x }\n", "headers: { dialect: draft11 }\nreplace: [headers]\n", "`headers` is already set at a: r.yaml:2", "`replace: [headers]`"},
		{"classes", "classes: [{ name: a, match: / }, { name: b }]\n", "classes: [{ name: c, match: / }, { name: d }]\nreplace: [classes]\n", "`classes` is already set at a: r.yaml:2", "`replace: [classes]`"},
		{"shed", "shed: { while: cpu > 80% }\n", "shed: { while: cpu > 90% }\nreplace: [shed]\n", "`shed` is already set at a: r.yaml:2", "`replace: [shed]`"},
		{"instances", "instances: 2\n", "instances: 3\nreplace: [instances]\n", "`instances` is already set at a: r.yaml:2", "`replace: [instances]`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			layer := func(name, text string) Layer {
				if !strings.Contains(text, "rules:") {
					text += strings.ReplaceAll(rule, "%", "of-"+name)
				}
				return Layer{Name: name, Files: map[string][]byte{"r.yaml": []byte(head + text), "l.txt": []byte("a\n")}}
			}
			_, problems := Join([]Layer{layer("a", c.plain), layer("b", c.plain)}, Options{})
			problems = slices.DeleteFunc(problems, func(p diag.Problem) bool { return p.Severity != diag.Error })
			if len(problems) != 1 || problems[0].Message != c.told+", in an earlier layer" || problems[0].Pos.File != "b: r.yaml" || !strings.Contains(problems[0].Hint, c.hint) {
				t.Errorf("in two layers: %v", problems)
			}
			f, problems := Join([]Layer{layer("a", c.plain), layer("b", c.replacing)}, Options{})
			if problems.HasErrors() {
				t.Fatalf("replaced: %v", problems)
			}
			if got := len(f.Rules) + len(f.Lists) + len(f.Identify) + len(f.Tiers); got > 3 {
				t.Errorf("nothing was replaced: %d entries", got)
			}
			// A third may replace the second, and the first layer nothing.
			if _, problems = Join([]Layer{layer("a", c.plain), layer("b", c.replacing), layer("c", c.replacing)}, Options{}); problems.HasErrors() {
				t.Errorf("replaced twice: %v", problems)
			}
			if _, problems = Join([]Layer{layer("a", c.replacing)}, Options{}); problems.HasErrors() || !strings.Contains(problems.Error(), "`replace` does nothing here: no earlier layer has") {
				t.Errorf("alone: %v", problems)
			}
			both := layer("a", c.plain)
			both.Files["s.yaml"] = layer("s", c.replacing).Files["r.yaml"]
			if _, problems = Join([]Layer{both}, Options{}); !strings.Contains(problems.Error(), c.told) || strings.Contains(problems.Error(), "earlier layer") {
				t.Errorf("twice in a layer: %v", problems)
			}
		})
	}
}

// Files of a layer that is not on disk are found as on disk, and nowhere else.
func TestLayersKeepToThemselves(t *testing.T) {
	const head = "version: 1\nrules: [{ name: NAME, per: ip, limits: 5/minute }]\n"
	file := func(name, more string) []byte { return []byte(strings.ReplaceAll(head, "NAME", name) + more) }
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, file("outside", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(main string, files map[string][]byte, rules, told string) {
		t.Helper()
		f, problems := Join([]Layer{{Name: "redis://h/0#rules", Main: main, Files: files}}, Options{})
		if told != "" {
			if !strings.Contains(problems.Error(), told) || !problems.HasErrors() {
				t.Errorf("%v: %v, want an error with %q", slices.Sorted(maps.Keys(files)), problems, told)
			}
			return
		}
		if len(problems) > 0 || names(f) != rules {
			t.Errorf("%s, %v; want %s", names(f), problems, rules)
		}
	}
	f("", map[string][]byte{"b.yaml": file("b", ""), "a.yml": file("a", ""), "sub/c.yaml": file("c", ""), "a_test.yaml": []byte("cases:"), ".d.yaml": []byte("["), "x.txt": nil}, "a b", "")
	f("main.yaml", map[string][]byte{"main.yaml": file("m", "include: [sub/*.yaml, ./sub/../more.yaml]\nlists: { l: file lists/l.txt }\n"), "sub/c.yaml": file("c", ""), "sub/d_test.yaml": nil, "more.yaml": file("e", ""), "other.yaml": file("o", ""), "lists/l.txt": []byte("a\n")}, "m c e", "")
	f("conf/main.yaml", map[string][]byte{"conf/main.yaml": file("m", "lists: { l: file ../lists/l.txt }\n"), "lists/l.txt": []byte("a\n")}, "m", "")
	f("conf/", map[string][]byte{"conf/a.yaml": file("a", "lists: { l: file ../lists/l.txt }\n"), "conf/b.yaml": file("b", ""), "top.yaml": file("top", ""), "lists/l.txt": []byte("a\n")}, "a b", "")
	for _, path := range []string{outside, "../outside.yaml", "sub/../../outside.yaml", "..", "../*.yaml", "/etc/*.yaml"} {
		f("main.yaml", map[string][]byte{"main.yaml": file("m", "include: \""+path+"\"\n")}, "", "`"+path+"` is outside of redis://h/0#rules")
		f("main.yaml", map[string][]byte{"main.yaml": file("m", "lists: { l: \"file "+path+"\" }\n")}, "", "`"+path+"` is outside of redis://h/0#rules")
		f("main.yaml", map[string][]byte{"main.yaml": file("m", "lists: { l: { file: \""+path+"\" } }\n")}, "", "`"+path+"` is outside of redis://h/0#rules")
	}
	f("main.yaml", map[string][]byte{"main.yaml": file("m", "include: gone.yaml\n")}, "", "cannot read `redis://h/0#rules: gone.yaml`: the source has no such file")
	f("main.yaml", map[string][]byte{"x.yaml": file("m", "")}, "", "the source has no such file")
	f("", map[string][]byte{"lists/x.yaml": file("m", "")}, "", "the folder has no *.yaml file")
	f("", map[string][]byte{}, "", "the folder has no *.yaml file")
	f("main.yaml", map[string][]byte{"main.yaml": file("m", "include: main.yaml\n")}, "", "files include each other: redis://h/0#rules: main.yaml")
	f("main.yaml", map[string][]byte{"main.yaml": []byte("version: 1\nrules: [{ nmae: x }]\n")}, "", "redis://h/0#rules: main.yaml:2:")
	// Another layer's files are not there either.
	_, problems := Join([]Layer{
		{Name: "one", Main: "main.yaml", Files: map[string][]byte{"main.yaml": file("m", "include: more.yaml\n")}},
		{Name: "two", Main: "more.yaml", Files: map[string][]byte{"more.yaml": file("n", "")}},
	}, Options{})
	if !strings.Contains(problems.Error(), "cannot read `one: more.yaml`") {
		t.Error(problems)
	}
}
