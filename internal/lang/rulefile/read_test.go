package rulefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/diag"
)

const smallest = "version: 1\nrules:\n  - { name: NAME, per: ip, limits: 5/minute }\n"

// write puts files into a new folder; the rules of each are called like it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "NAME", base)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func names(f *File) string {
	var all []string
	for _, r := range f.Rules {
		all = append(all, r.Name.Text)
	}
	return strings.Join(all, " ")
}

func TestReadFolder(t *testing.T) {
	folder := write(t, map[string]string{
		"b.yaml": smallest, "a.yml": smallest, "c.txt": "no rules", ".hidden.yaml": "broken: [",
		"sub/d.yaml": smallest,
	})
	f, problems := Read(folder, Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want(t, "rules", names(f), "a b")
	want(t, "Name", f.Name, folder)
	want(t, "Files", f.Files, []string{filepath.Join(folder, "a.yml"), filepath.Join(folder, "b.yaml")})
}

// Tests may be kept beside the rules: neither a folder nor a pattern reads them. A file
// that is named is read, whatever its name.
func TestTestsAreLeftOut(t *testing.T) {
	const test = "rules: a.yaml\ncases: [{ name: a, steps: [{ request: GET /, want: ok }] }]\n"
	files := map[string]string{"a.yaml": smallest, "b.yml": smallest, "a_test.yaml": test, "b_test.yml": test, "_test.yaml": test, "atest.yaml": smallest}
	folder := write(t, files)
	f, problems := Read(folder, Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want(t, "rules of the folder", names(f), "a atest b")

	files["main.yml"] = "version: 1\ninclude: ['a*.yaml', '*.yml']\n"
	folder = write(t, files)
	f, problems = Read(filepath.Join(folder, "main.yml"), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want(t, "rules of patterns", names(f), "a atest b")

	folder = write(t, map[string]string{"load_test.yaml": smallest, "main.yml": "version: 1\ninclude: load_test.yaml\n", "none.yml": "version: 1\ninclude: '*_test.yaml'\nrules: []\n"})
	for _, name := range []string{"load_test.yaml", "main.yml"} {
		f, problems = Read(filepath.Join(folder, name), Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		want(t, "rules of "+name, names(f), "load_test")
	}
	if _, problems = Read(filepath.Join(folder, "none.yml"), Options{}); len(problems) != 2 || !strings.Contains(problems[0].Message, "no file is called") {
		t.Errorf("a pattern of tests alone: %v", problems)
	}
	folder = write(t, map[string]string{"a_test.yaml": test})
	if _, problems = Read(folder, Options{}); len(problems) != 1 || !strings.Contains(problems[0].Message, "no *.yaml file with rules") {
		t.Errorf("a folder of tests alone: %v", problems)
	}
}

func TestReadNothing(t *testing.T) {
	f := func(name, message string) {
		t.Helper()
		file, problems := Read(name, Options{})
		if file != nil || len(problems) != 1 || !strings.Contains(problems[0].Message, message) || problems[0].Hint == "" {
			t.Errorf("%s: file %v, problems %v, want one that says %q", name, file, problems, message)
		}
	}
	f(t.TempDir(), "the folder has no *.yaml file")
	f(filepath.Join(t.TempDir(), "rules.yaml"), "no such file")
	f(filepath.Join(write(t, map[string]string{"empty.yaml": ""}), "empty.yaml"), "the file is empty")
}

func TestInclude(t *testing.T) {
	folder := write(t, map[string]string{
		"main.yaml":         strings.Replace(smallest, "rules:", "include: [\"*.yaml\", sub/one.yaml]\nrules:", 1),
		"other.yaml":        strings.Replace(smallest, "rules:", "include: ./sub/../sub/one.yaml\nrules:", 1),
		"sub/one.yaml":      strings.Replace(smallest, "rules:", "include: deep/two.yaml\nrules:", 1),
		"sub/deep/two.yaml": smallest,
	})
	f, problems := Read(filepath.Join(folder, "main.yaml"), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want(t, "rules, each file once", names(f), "main other one two")
}

// A file may stand anywhere: Parse reads what it includes beside its name.
func TestParseIncludes(t *testing.T) {
	asked := ""
	o := Options{ReadFile: func(name string) ([]byte, error) {
		asked = name
		return []byte(strings.ReplaceAll(smallest, "NAME", "more")), nil
	}}
	f, problems := Parse("etc/rules.yaml", []byte("version: 1\ninclude: more.yaml\n"), o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want(t, "the file asked for", asked, filepath.Join("etc", "more.yaml"))
	want(t, "rules", names(f), "more")
}

func TestIncludeTooDeep(t *testing.T) {
	o := Options{ReadFile: func(name string) ([]byte, error) {
		return []byte("version: 1\ninclude: x/" + filepath.Base(name) + "\nrules: []\n"), nil
	}}
	_, problems := Read("a.yaml", o)
	if !problems.HasErrors() || !strings.Contains(problems.Error(), "too many files include others") {
		t.Errorf("problems %v", problems)
	}
}

func TestProblem(t *testing.T) {
	f := good(t, "full.yaml")
	p := f.Problem(f.rule(t, "api").Name.Pos, diag.Warning, "why", "how")
	if !strings.Contains(p.Source, "- name: api") || p.Message != "why" || p.Hint != "how" || p.Severity != diag.Warning {
		t.Errorf("got %+v", p)
	}
	line := f.Problem(f.Lists[1].Values[0].Pos, diag.Error, "why", "how")
	want(t, "the line of a list", line.Source, "192.0.2.66")
}

// One mistake is told once, and nothing that only follows from it.
func TestNoCascades(t *testing.T) {
	f := func(src, message string) {
		t.Helper()
		_, problems := Parse("rules.yaml", []byte(src), Options{Now: today})
		if len(problems) != 1 || !strings.Contains(problems[0].Message, message) {
			t.Errorf("%s\ngot\n%s\nwant one problem: %s", src, problems.Error(), message)
		}
	}
	head := "version: 1\nidentify: { user: jwt.sub }\nrules:\n"
	f(head+"  - { name: a, pre: user, limits: 5/minute }", "unknown field `pre`")
	f(head+"  - { name: a, per: user, limit: 5/minute, block: 5m }", "unknown field `limit`")
	f(head+"  - { name: a, per: user, limits: 5/mins, cost: 7, over: { soft: 10% }, block: 5m }", "unknown unit")
	f(head+"  - { name: a, per: user, tier: { from: user, else: free } }", "there is no tier")
	f(head+"  - { name: a, per: user, limits: { by: usr, rows: { a: 5/minute }, else: 1/minute }, block: 5m }", "unknown name")
	f(head+"  - { name: a, per: user, concurrency: { slots: 0, lease: 5s } }", "`slots` is 0")
	f(head+"  - { name: a, per: user, quota: { amount: 5/hour, anchor: 3 } }", "a quota is per day")
	f(head+"  - { name: a, per: user, limits: { rate: 5/second, algorithm: leaky_bucket }, queue: { places: x, max_wait: 1s } }", "`places` is not a whole number")
	f(head+"  - { name: a, per: user, limits: { rate: 5/second, algorithm: leaky_bucket }, queue: }", "nothing is written after `queue:`")
	f(head+"  - { name: a, matc: \"/x/{id}\", per: route, limits: 5/second }", "unknown field `matc`")
	f(head+"  - { name: a, match: x, per: route, limits: 5/second }", "has no path")
	f(head+"  - { name: a, per: user, limits: 5/second, denny: true }", "unknown field `denny`")
	f(head+"  - { name: a, per: user, limits: { rate: 5/second, algorithm: leaky_bucket }, for: [{ unless: { user: x }, cost: 1 }] }", "there is no `queue`")
	f("version: 1\nidentify: { user: jwt }\nrules:\n  - { name: a, per: user, limits: 5/minute, when: { user: x } }", "is not a place to find a value in")
	f("version: 1\nlists: { l: file none.txt }\nrules:\n  - { name: a, when: { ip: in l }, deny: true }", "cannot read")
	f("version: 1\nidentify: { user: jwt.sub }\nrule:\n  - { name: a, per: user, limits: 5/minute }", "unknown field `rule`")
}
