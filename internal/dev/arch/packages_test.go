package arch

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/design.md says of each package what it is for and what it weighs, and names none that is gone.
func TestDesignPageNamesPackages(t *testing.T) {
	page, err := os.ReadFile("../../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile("`((?:client|cmd|fleet|httplimit|internal|rules|store)(?:/[a-z0-9]+)*)`")
	folders := make(map[string]bool)
	for name := range moduleFiles(t, "../../..") {
		if folder := path.Dir(name); ours.MatchString("`" + folder + "`") {
			folders[folder] = true
		}
	}
	for _, title := range []string{"Layout", "What each package weighs, and why"} {
		_, section, _ := strings.Cut(string(page), "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, name := range ours.FindAllStringSubmatch(section, -1) {
			if !folders[name[1]] {
				t.Errorf("%s: there is no package %s", title, name[1])
			}
		}
		for _, folder := range slices.Sorted(maps.Keys(folders)) {
			// A package of helpers may be in the line of the one that it helps.
			if !strings.Contains(section, "`"+folder+"`") && !strings.Contains(section, "`"+path.Base(folder)+"`") {
				t.Errorf("%s: %s is missing", title, folder)
			}
		}
	}
}

// Seen from above, internal is a handful of rooms.
func TestFewFoldersInInternal(t *testing.T) {
	const most = 9
	rooms := make(map[string]bool)
	for name := range moduleFiles(t, "../../..") {
		if rest, ok := strings.CutPrefix(name, "internal/"); ok {
			room, _, _ := strings.Cut(rest, "/")
			rooms[room] = true
		}
	}
	if len(rooms) > most || len(rooms) < 2 {
		t.Errorf("internal has %d folders: %v; want %d at most", len(rooms), slices.Sorted(maps.Keys(rooms)), most)
	}
}
