package tidegate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageTitle  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	pageAnchor = regexp.MustCompile(`<a id="([^"]+)"`)
	notInSlug  = regexp.MustCompile(`[^\pL\pN_\- ]`)
)

// pages are all Markdown files by name, without their blocks of code.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || entry.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			text, err := os.ReadFile(name)
			all[filepath.ToSlash(name)] = codeBlock.ReplaceAllString(string(text), "")
			return err
		}
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// anchorsOf are the places of a page that links can lead to, as GitHub names them.
func anchorsOf(page string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range pageAnchor.FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	times := make(map[string]int)
	for _, m := range pageTitle.FindAllStringSubmatch(page, -1) {
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if n := times[slug]; n > 0 {
			all[slug+"-"+strconv.Itoa(n)] = true
		}
		all[slug] = true
		times[slug]++
	}
	return all
}

// Links of pages lead to files and places that exist.
func TestLinksOfPages(t *testing.T) {
	testdep.SkipUnderRace(t)
	all, links := pages(t), 0
	for name, page := range all {
		for _, m := range pageLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(page, ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, ":") { // elsewhere
				continue
			}
			links++
			to := name
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			} else if anchor != "" && filepath.Ext(to) == ".md" && !anchorsOf(all[to])[anchor] {
				t.Errorf("%s: %s: there is no such title", name, m[1])
			}
		}
	}
	if links < 500 {
		t.Errorf("only %d links were found", links)
	}
}

// The README leads to every page of docs.
func TestREADMENamesEveryPage(t *testing.T) {
	text, _ := readme(t)
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	for _, file := range files {
		if !strings.Contains(text, "]("+filepath.ToSlash(file)+")") {
			t.Errorf("%s is not in the README", file)
		}
	}
}
