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
	raceCut   = regexp.MustCompile(`\bif [^\n]*\b[rR]aceEnabled\b|const thin = ([2-9]|\d\d)`)
	allocLine = regexp.MustCompile(`test -run Alloc ([^|]*) \|\|`)
	wholeLine = regexp.MustCompile(`test -skip (\w+) "\$\{args\[@\]\}" (\./[^|]*) \|\| failed="[^"]*cut under`)
)

// What is skipped or cut under the race detector is run without it by make test: scripts/test.sh names the package, to
// be run whole but for tests that are not cut, or by the name of the test, which says then that it is about allocations.
func TestCutUnderRaceIsRun(t *testing.T) {
	const root = "../../.."
	script, err := os.ReadFile(root + "/scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	alloc, whole := allocLine.FindSubmatch(script), wholeLine.FindSubmatch(script)
	if alloc == nil || whole == nil {
		t.Fatal("scripts/test.sh has no lines for tests without the race detector")
	}
	ofAlloc, skipped, ofAll, found := strings.Fields(string(alloc[1])), string(whole[1]), strings.Fields(string(whole[2])), 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, at := range raceCut.FindAllIndex(text, -1) {
			found++
			above := testFunc.FindAllSubmatch(text[:at[0]], -1)
			in, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if in != "." {
				in = "./" + filepath.ToSlash(in)
			}
			named := func(part string) bool {
				return len(above) > 0 && strings.Contains(string(above[len(above)-1][1]), part)
			}
			if (!slices.Contains(ofAll, in) || named(skipped)) && !(named("Alloc") && slices.Contains(ofAlloc, in)) {
				t.Errorf("%s does less under the race detector, and scripts/test.sh does not run it without", path)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d such tests, %v", found, err)
	}
}
