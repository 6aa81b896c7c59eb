package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	raceCut   = regexp.MustCompile(`\bif [^\n]*\b[rR]aceEnabled\b|const thin = ([2-9]|\d\d)`)
	allocLine = regexp.MustCompile(`test -run Alloc ([^|]*) \|\|`)
	cutLine   = regexp.MustCompile(`(?m)^\tcut="(.*)"$`)
	raceSkip  = regexp.MustCompile(`\btestdep\.SkipUnderRace\(|(?m)^func TestConformance`)
	skipLine  = regexp.MustCompile(`(?m)^\tskipping=.*testdep.*' (.*)\)$`)
)

// What is skipped or cut under the race detector is run without it by make test. Of what is cut, scripts/test.sh names the
// package, or the name of the test says that it is about allocations. What is skipped is in one of these packages, or in a
// folder that the script looks through.
func TestCutUnderRaceIsRun(t *testing.T) {
	testdep.SkipUnderRace(t)
	const root = "../../.."
	script, err := os.ReadFile(root + "/scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	alloc, cut, skip := allocLine.FindSubmatch(script), cutLine.FindSubmatch(script), skipLine.FindSubmatch(script)
	if alloc == nil || cut == nil || skip == nil {
		t.Fatal("scripts/test.sh has no lines for tests without the race detector")
	}
	ofAlloc, ofAll, folders := strings.Fields(string(alloc[1])), strings.Fields(string(cut[1])), strings.Fields(string(skip[1]))
	found, skips := 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		in = filepath.ToSlash(in)
		top, _, _ := strings.Cut(in, "/")
		if in != "." {
			in = "./" + in
		}
		if raceSkip.Match(text) {
			skips++
			if !slices.Contains(folders, top) && !slices.Contains(ofAll, in) {
				t.Errorf("%s has tests that are skipped under the race detector, and scripts/test.sh does not look for them there", path)
			}
		}
		for _, at := range raceCut.FindAllIndex(text, -1) {
			found++
			above := testFunc.FindAllSubmatch(text[:at[0]], -1)
			ofAllocations := len(above) > 0 && strings.Contains(string(above[len(above)-1][1]), "Alloc")
			if !slices.Contains(ofAll, in) && !(ofAllocations && slices.Contains(ofAlloc, in)) {
				t.Errorf("%s does less under the race detector, and scripts/test.sh does not run it without", path)
			}
		}
		return nil
	})
	if err != nil || found < 10 || skips < 10 {
		t.Errorf("%d are cut and %d files have skips, %v", found, skips, err)
	}
}
