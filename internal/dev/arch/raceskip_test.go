package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	raceSkip  = regexp.MustCompile(`if raceEnabled[^\n]*\{\n\s*t\.Skip`)
	allocLine = regexp.MustCompile(`test -run Alloc ([^|]*) \|\|`)
)

// What is skipped under the race detector is run without it by make test: scripts/test.sh names the package, and
// the name of the test says that it is about allocations.
func TestSkippedUnderRaceIsRun(t *testing.T) {
	const root = "../../.."
	script, err := os.ReadFile(root + "/scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	line := allocLine.FindSubmatch(script)
	if line == nil {
		t.Fatal("scripts/test.sh has no line that tests allocations")
	}
	packages, found := strings.Fields(string(line[1])), 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, at := range raceSkip.FindAllIndex(text, -1) {
			found++
			above := testFunc.FindAllSubmatch(text[:at[0]], -1)
			in, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if in != "." {
				in = "./" + filepath.ToSlash(in)
			}
			if len(above) == 0 || !strings.Contains(string(above[len(above)-1][1]), "Alloc") || !slices.Contains(packages, in) {
				t.Errorf("%s skips a test under the race detector that scripts/test.sh does not run without it", path)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d such tests, %v", found, err)
	}
}
