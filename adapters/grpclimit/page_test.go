package grpclimit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules"
)

var block = regexp.MustCompile("(?s)```(go|yaml)\n(.*?)```")

// squeeze leaves indentation and empty lines out of a comparison.
func squeeze(code string) string { return strings.Join(strings.Fields(code), " ") }

// The code of the page is that of the examples, and its rules are valid.
func TestPageShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		t.Errorf("the page has %d blocks", len(blocks))
	}
	for _, b := range blocks {
		if b[1] == "yaml" {
			if _, err := rules.Parse("page.yaml", []byte(b[2]), rules.Config{}); err != nil {
				t.Error(err)
			}
		} else if !strings.Contains(squeeze(string(examples)), squeeze(b[2])) {
			t.Errorf("no example has this code:\n%s", b[2])
		}
	}
}
