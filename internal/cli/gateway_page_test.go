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
	now = keep(t, page, string(src), refreshed(t, now, "."))
	blocks := len(shown.FindAllString(now, -1))
	if blocks != 2 || !strings.Contains(now, "| `drain` |") {
		t.Errorf("found %d blocks, want two and the table: are they still marked?", blocks)
	}
}
