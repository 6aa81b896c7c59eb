package client_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What docs/outbound.md shows has been compiled and run: each piece is in an example.
func TestPageShowsCodeOfTheExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/outbound.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	squeeze := func(code string) string { return strings.Join(strings.Fields(code), " ") }
	tested := squeeze(string(examples))
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, piece := range pieces {
		if !strings.Contains(tested, squeeze(piece[1])) {
			t.Errorf("this is in no example:\n%s", piece[1])
		}
	}
	if len(pieces) < 5 {
		t.Errorf("only %d pieces of code were found", len(pieces))
	}
}
