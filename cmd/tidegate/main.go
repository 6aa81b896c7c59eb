// Command tidegate limits how much may pass: see tidegate --help.
package main

import (
	"os"
	_ "time/tzdata" // quotas have zones, and a small image has none

	"tidegate.dev/tidegate/internal/cli"
)

func main() { os.Exit(cli.Main(cli.System(), os.Args[1:])) }
