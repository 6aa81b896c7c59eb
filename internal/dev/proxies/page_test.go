package proxies

import (
	"flag"
	"os"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write the files of deploy into docs/front-ends.md")

var shownFile = regexp.MustCompile("(?s)<!-- (deploy/[^ ]+) -->\n```([a-z]+)\n.*?```")

// docs/front-ends.md shows the files of deploy as they are.
func TestPageShowsTheFiles(t *testing.T) {
	const page = "../../../docs/front-ends.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	now := shownFile.ReplaceAllStringFunc(string(raw), func(block string) string {
		blocks++
		m := shownFile.FindStringSubmatch(block)
		text, err := os.ReadFile("../../../" + m[1])
		if err != nil {
			t.Error(err)
		}
		return "<!-- " + m[1] + " -->\n```" + m[2] + "\n" + string(text) + "```"
	})
	if blocks < 10 {
		t.Errorf("found %d blocks: are they still marked?", blocks)
	}
	if now == string(raw) {
		return
	}
	if !*update {
		t.Fatal("docs/front-ends.md does not show the files as they are: run go test ./internal/dev/proxies -run Page -update")
	}
	if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}
