//go:build unix

package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/config"
)

var settingsTable = regexp.MustCompile(`(?s)(<!-- settings -->\n).*(<!-- /settings -->)`)

// docs/gateway.md has the settings as they are, the example as it is, and what the
// command really prints.
func TestGatewayPageShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..")
	allowOpenFiles(t, 1024)
	const page = "docs/gateway.md"
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := config.Markdown(&table); err != nil {
		t.Fatal(err)
	}
	now := settingsTable.ReplaceAllString(string(src), "${1}"+strings.ReplaceAll(table.String(), "$", "$$")+"${2}")
	blocks := 0
	now = shown.ReplaceAllStringFunc(now, func(block string) string {
		blocks++
		m := shown.FindStringSubmatch(block)
		var want bytes.Buffer
		if command, ok := strings.CutPrefix(m[1], "$ tidegate "); ok {
			run(t.Context(), Env{Stdout: &want, Stderr: &want, Getenv: os.Getenv}, strings.Fields(command))
		} else if file, err := os.ReadFile(m[1]); err != nil {
			t.Error(err)
		} else {
			want.Write(file)
		}
		return "<!-- " + m[1] + " -->\n```" + m[2] + "\n" + want.String() + "```"
	})
	if blocks != 2 || !strings.Contains(now, "| `drain` |") {
		t.Errorf("found %d blocks, want two and the table: are they still marked?", blocks)
	}
	if now == string(src) {
		return
	}
	if !*update {
		t.Fatalf("%s does not show what is: run go test ./internal/cli -update", page)
	}
	if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}
