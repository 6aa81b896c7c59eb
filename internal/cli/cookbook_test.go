package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cookbook are the files that docs/cookbook.md shows, in its order.
var cookbook = []string{
	"github", "stripe", "shopify", "discord", "slack", "reddit", "x", "openai", "twilio", "google-maps", "google-docs", "login", "sign-up",
}

// Every file of the cookbook passes lint --strict and its own test, which touches all its rules.
func TestCookbook(t *testing.T) {
	t.Chdir("../..")
	files, err := filepath.Glob("docs/cookbook/*")
	if err != nil || len(files) != 2*len(cookbook) {
		t.Errorf("%d files, want a rule file and a test for each of %d: %v", len(files), len(cookbook), err)
	}
	for _, name := range cookbook {
		t.Run(name, func(t *testing.T) {
			f := func(args ...string) {
				t.Helper()
				var out bytes.Buffer
				if code := run(t.Context(), Env{Stdout: &out, Stderr: &out, Getenv: os.Getenv}, args); code != exitOK {
					t.Errorf("tidegate %s: exit %d\n%s", strings.Join(args, " "), code, out.String())
				}
			}
			f("lint", "--strict", "docs/cookbook/"+name+".yaml")
			f("test", "--strict", "docs/cookbook/"+name+"_test.yaml")
		})
	}
}

// docs/cookbook.md shows all of them as they are, in its order.
func TestCookbookPageShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..")
	src := upToDate(t, "docs/cookbook.md", "docs")
	var found []string
	for _, m := range shown.FindAllStringSubmatch(src, -1) {
		found = append(found, strings.TrimSuffix(filepath.Base(m[1]), ".yaml"))
	}
	if !slices.Equal(found, cookbook) {
		t.Errorf("the page shows %v, want %v", found, cookbook)
	}
}
