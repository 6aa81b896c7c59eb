package main

import (
	"fmt"
	"io"
	"strings"
)

// explain prints what to try at url, ready to be pasted into a shell.
func explain(out io.Writer, url string) {
	fmt.Fprintf(out, "A small API behind Tidegate listens on %s. Try, in another terminal:\n", url)
	for _, t := range tries {
		fmt.Fprintf(out, "\n# %s\n%s\n#   -> %s\n", t.about, t.command(url), t.want)
	}
	fmt.Fprint(out, "\nCtrl-C ends it.\n")
}

func (t try) command(url string) string { return strings.ReplaceAll(t.line, "URL", url) }
