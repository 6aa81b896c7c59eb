package rulefile

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const referencePage = "../../../docs/reference/rules.md"

// firstCell is the word that a row of a table is about.
var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*)$")

// referenceSections returns the page by its headings, in lower case.
func referenceSections(t *testing.T) map[string]string {
	raw, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, s := range strings.Split(string(raw), "\n## ")[1:] {
		heading, text, _ := strings.Cut(s, "\n")
		sections[strings.ToLower(heading)] = text
	}
	return sections
}

// Every map of the language has a section with its example and exactly its words.
func TestReferenceHasEveryWord(t *testing.T) {
	sections := referenceSections(t)
	for _, p := range places {
		text, ok := sections[p.name]
		if !ok {
			t.Errorf("%s has no section %q", referencePage, p.name)
			continue
		}
		if !strings.Contains(text, "\n`"+p.example+"`\n") {
			t.Errorf("%s: the section %s does not show `%s`", referencePage, p.name, p.example)
		}
		var found []string
		for _, m := range firstCell.FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		for _, word := range p.words {
			if !slices.Contains(found, word) {
				t.Errorf("%s: the section %s does not explain `%s`", referencePage, p.name, word)
			}
		}
		for _, word := range found {
			if !slices.Contains(p.words, word) {
				t.Errorf("%s: the section %s explains `%s`, which there is not", referencePage, p.name, word)
			}
		}
		for old := range p.renamed {
			if !strings.Contains(text, "`"+old+"`") {
				t.Errorf("%s: the section %s does not say that `%s` has another name", referencePage, p.name, old)
			}
		}
	}
}

// Every source of the page is read, and the page has every kind of source and every spelling.
func TestReferenceHasEverySource(t *testing.T) {
	kinds, words := make(map[SourceKind]bool), make(map[string]bool)
	for _, m := range firstCell.FindAllStringSubmatch(referenceSections(t)["sources"], -1) {
		s, wrong := parseSource(m[1], "")
		if s.Kind == SourceNone {
			t.Errorf("`%s` is not read: %s", m[1], wrong.message)
		}
		kinds[s.Kind] = true
		for _, word := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == '.' }) {
			words[word] = true
		}
	}
	end := sourceKinds(t)
	if end <= SourceDescriptor {
		t.Fatalf("found %d kinds of sources in the parser: is it still written so?", end)
	}
	for k := SourceNone + 1; k < end; k++ {
		if !kinds[k] {
			t.Errorf("the page has no example of source %d", k)
		}
	}
	for _, s := range spellings {
		if !words[s.word] {
			t.Errorf("the page does not have `%s`", s.word)
		}
	}
	for _, word := range slices.Concat(sourceWords, slices.Collect(maps.Keys(builtIn)), slices.Collect(maps.Keys(dotted))) {
		if !words[word] {
			t.Errorf("the page has no source with `%s`", word)
		}
	}
}

// sourceKinds is the first kind of source after the last.
func sourceKinds(t *testing.T) SourceKind {
	src, err := os.ReadFile("ast.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(src), "SourceNone SourceKind = iota\n")
	block, _, _ := strings.Cut(after, "\n)")
	return SourceKind(1 + len(regexp.MustCompile(`(?m)^\tSource\w+`).FindAllString(block, -1)))
}

// Every word that a field may have as its value is on the page, and beside the field where the
// parser names it.
func TestReferenceHasEveryValue(t *testing.T) {
	sections := referenceSections(t)
	var page strings.Builder
	rows := make(map[string]string) // of all tables, by the field
	for _, text := range sections {
		page.WriteString(text)
		for _, m := range firstCell.FindAllStringSubmatch(text, -1) {
			rows["`"+m[1]+"`"] += m[2]
		}
	}
	check := func(field string, values ...string) {
		t.Helper()
		where := page.String()
		if field != "" {
			where = rows[field]
		}
		for _, v := range values {
			if !strings.Contains(where, "`"+v+"`") {
				t.Errorf("%s: no `%s` beside %s", referencePage, v, field)
			}
		}
	}
	calls := 0
	for field, values := range choices(t) {
		calls++
		check(field, values...)
	}
	if calls < 6 {
		t.Errorf("found %d fields with a choice of words in the parser: is it still written so?", calls)
	}
	check("`algorithm`", algorithms...)
	check("`dialect`", dialects...)
	check("`while`", signals...)
	check("", placeholders...)
	check("", unitNames...)
	check("", slices.Collect(maps.Keys(unitSpellings))...)
}

// choices finds the calls d.oneOf(n, "`field`", "word", …) of the parser.
func choices(t *testing.T) map[string][]string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			if fn, ok := call.Fun.(*ast.SelectorExpr); !ok || fn.Sel.Name != "oneOf" {
				return true
			}
			var texts []string
			for _, arg := range call.Args[1:] {
				text := ""
				if lit, ok := arg.(*ast.BasicLit); ok {
					text, _ = strconv.Unquote(lit.Value)
				}
				texts = append(texts, text)
			}
			for _, v := range texts[1:] {
				if v != "" {
					found[texts[0]] = append(found[texts[0]], v)
				}
			}
			return true
		})
	}
	return found
}
