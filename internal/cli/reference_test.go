package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const commandsHead = `# Commands

Every command of ` + "`tidegate`" + ` with its flags, as ` + "`tidegate COMMAND --help`" + ` prints them; the tests of the
project write this page. A flag may stand anywhere among the arguments, with one dash or two.

| command | |
|---|---|
`

// docs/reference/commands.md has every command and flag. The flags that config has of
// serve are not repeated.
func TestCommandsReferenceShowsWhatIsTrue(t *testing.T) {
	t.Chdir("../..")
	allowOpenFiles(t, 1024) // a default depends on it
	var page bytes.Buffer
	page.WriteString(commandsHead)
	for _, c := range commands {
		fmt.Fprintf(&page, "| [%s](#tidegate-%s) | %s |\n", c.name, c.name, c.summary)
	}
	page.WriteString("\n```text\n")
	overview(&page)
	page.WriteString("```\n")
	ofServe := make(map[string]bool) // lines about flags
	for _, c := range commands {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		c.setup(flags)
		var help bytes.Buffer
		c.usage(&help, flags)
		fmt.Fprintf(&page, "\n## tidegate %s\n\n```text\n", c.name)
		left := 0
		for line := range strings.Lines(help.String()) {
			isFlag := strings.HasPrefix(line, "  --")
			if c.name == "config" && isFlag && ofServe[line] {
				left++
				continue
			}
			ofServe[line] = isFlag && c.name == "serve"
			page.WriteString(line)
		}
		if left > 0 {
			fmt.Fprintf(&page, "  and %d flags of tidegate serve\n", left)
		}
		page.WriteString("```\n")
	}
	const file = "docs/reference/commands.md"
	was, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	keep(t, file, string(was), page.String())
}
