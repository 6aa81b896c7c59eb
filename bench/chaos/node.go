package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	_ "time/tzdata" // as the command has it

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/internal/cli"
)

// nodeWord is how this program is told to be a gateway.
const nodeWord = "node"

// runNode is tidegate serve, with a probe in the same process whose figures are had from
// an address of their own. What serve writes to its access log goes to the probe.
func runNode(config, address string) int {
	process.EndWithParent()
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos node:", err)
		return 1
	}
	p := new(probe)
	go p.watch()
	go func() { _ = http.Serve(l, p) }()
	env := cli.System()
	env.Stdout = p
	return cli.Main(env, []string{"serve", "-c", config})
}
