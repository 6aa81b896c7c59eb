package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

func overview(w io.Writer) {
	fmt.Fprint(w, `Tidegate limits how much may pass: per user, address, key or endpoint.

Usage: tidegate COMMAND [FLAGS] [ARGUMENTS]

`)
	for _, c := range commands {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
Run tidegate COMMAND --help for details and examples.
Exit codes: 0 success; 1 errors were found, or the command failed; 2 the command line,
or the configuration or rules of serve, cannot be used.
`)
}

func (c *command) usage(w io.Writer, flags *flag.FlagSet) {
	fmt.Fprintf(w, "%s\n\n%s\n", c.summary, strings.TrimSpace(c.help))
	any := false
	flags.VisitAll(func(f *flag.Flag) {
		if !any {
			fmt.Fprint(w, "\nFlags:\n")
			any = true
		}
		value, text := flag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(w, "  --%-22s %s", f.Name+value, text)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}
