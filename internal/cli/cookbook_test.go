package cli

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// needs and apis are the files that docs/cookbook.md shows, in its order.
var (
	needs = []string{
		"flash-sale", "course-registration", "graphql", "webhooks", "billing-day", "ipv6", "grpc", "endpoint-groups", "b2b-plans",
		"scraping", "internal-share", "paid-calls", "login", "sign-up",
	}
	apis = []string{"github", "stripe", "shopify", "discord", "slack", "reddit", "x", "openai", "twilio", "google-maps", "google-docs"}
)

// reloaded are the files that the test of another one puts in force.
var reloaded = map[string]string{"flash-sale-hour": "flash-sale"}

// Every file of the cookbook passes lint --strict and its own test, which touches all its rules.
func TestCookbook(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Chdir("../..")
	var want []string
	for name := range reloaded {
		want = append(want, name+".yaml")
	}
	for _, name := range slices.Concat(needs, apis) {
		want = append(want, name+".yaml", name+"_test.yaml")
	}
	slices.Sort(want)
	entries, err := os.ReadDir("docs/cookbook")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	if !slices.Equal(files, want) || len(needs)+len(apis) != 25 {
		t.Errorf("there are %q, want 25 rule files, each with a test, and what they reload: %q", files, want)
	}
	f := func(t *testing.T, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), Env{Stdout: &out, Stderr: &out, Getenv: os.Getenv}, args); code != exitOK {
			t.Errorf("tidegate %s: exit %d\n%s", strings.Join(args, " "), code, out.String())
		}
		return out.String()
	}
	for _, name := range slices.Concat(needs, apis) {
		t.Run(name, func(t *testing.T) {
			f(t, "lint", "--strict", "docs/cookbook/"+name+".yaml")
			f(t, "test", "--strict", "docs/cookbook/"+name+"_test.yaml")
		})
	}
	for name, before := range reloaded {
		t.Run(name, func(t *testing.T) {
			told := f(t, "lint", "--strict", "--was", "docs/cookbook/"+before+".yaml", "docs/cookbook/"+name+".yaml")
			if strings.Count(told, "continues from") != 2 {
				t.Errorf("not both rules count on:\n%s", told)
			}
		})
	}
}

// cookbookParts are what each section of docs/cookbook.md has, in this order: perhaps the need in somebody's own words,
// an introduction, one file or two, perhaps the test, what the test shows, what to watch out for.
var cookbookParts = regexp.MustCompile("(?s)^(> .*?\n\n)?(.*?\n\n)?<!-- cookbook/([a-z0-9-]+)\\.yaml -->\n```yaml\n.*?```\n\n(?:<!-- cookbook/([a-z0-9-]+)\\.yaml -->\n```yaml\n.*?```\n\n)?" +
	"(?:<!-- cookbook/[a-z0-9-]+_test\\.yaml -->\n```yaml\n.*?```\n\n)?" +
	"What \\[its test\\]\\(cookbook/([a-z0-9-]+)_test\\.yaml\\) shows.*?:\n\n<!-- \\$ tidegate test -v( --answers)? docs/cookbook/([a-z0-9-]+)_test\\.yaml -->\n```text\n(.*?)```\n\n\\*\\*Watch out\\.\\*\\*\\s+[^\\s].*\n$")

// docs/cookbook.md shows all of them as they are, in its order: the file, the test, what a client is told, what to
// watch out for; and the needs in the words of those who have them.
func TestCookbookPageShowsWhatIsTrue(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Chdir("../..")
	src := upToDate(t, "docs/cookbook.md", "docs")
	_, links, _ := strings.Cut(src, "\n| need |")
	links, _, _ = strings.Cut(links, "\n## ")
	sections := strings.Split(src, "\n## ")[1:]
	var found []string
	for _, section := range sections {
		title, text, _ := strings.Cut(section, "\n\n")
		anchor := regexp.MustCompile(`[^a-z0-9-]`).ReplaceAllString(strings.ReplaceAll(strings.ToLower(title), " ", "-"), "")
		if !strings.Contains(links, "| ["+title+"](#"+anchor+") |") {
			t.Errorf("the table does not link to %s", title)
		}
		m := cookbookParts.FindStringSubmatch(strings.TrimRight(text, "\n") + "\n")
		if m == nil {
			t.Errorf("%s: parts are missing, or in another order", title)
			continue
		}
		name := m[3]
		found = append(found, name)
		switch {
		case m[5] != name || m[7] != name:
			t.Errorf("%s shows %s, and the tests of %s and %s", title, name, m[5], m[7])
		case m[4] != "" && reloaded[m[4]] != name:
			t.Errorf("%s shows %s as well", title, m[4])
		case (m[1] != "") != slices.Contains(needs, name) || m[1]+m[2] == "":
			t.Errorf("%s does not begin with the need", title)
		case strings.Contains(m[8], "FAIL") || !strings.Contains(m[8], "ok   "):
			t.Errorf("%s: its test shows\n%s", title, m[8])
		case name == "x" && m[6] != "": // its headers have the time of day
			t.Errorf("%s shows an answer that changes", title)
		case name != "x" && !strings.Contains(m[8], "\n    HTTP/"):
			t.Errorf("%s does not show what a limited client is told", title)
		}
	}
	if !slices.Equal(found, slices.Concat(needs, apis)) {
		t.Errorf("the page shows %v, want %v", found, slices.Concat(needs, apis))
	}
}
