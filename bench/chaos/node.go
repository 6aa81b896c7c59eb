package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
	_ "time/tzdata" // as the command has it

	"tidegate.dev/tidegate/internal/cli"
)

// nodeWord is the first argument of this program when it is to be a gateway.
const nodeWord = "node"

// nodeArgs returns the arguments of a node: its configuration, the address of its probe, and
// the process it ends with.
func nodeArgs(config, probe string) []string {
	return []string{nodeWord, config, probe, strconv.Itoa(os.Getpid())}
}

// asNode runs a gateway if the arguments of this process say so.
func asNode() {
	if len(os.Args) == 5 && os.Args[1] == nodeWord {
		os.Exit(runNode(os.Args[2], os.Args[3], os.Args[4]))
	}
}

// runNode runs tidegate serve, with a probe in the same process that serves its figures on
// an address of its own. What serve writes to its access log goes to the probe.
func runNode(config, address, parent string) int {
	pid, err := strconv.Atoi(parent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos node:", err)
		return 1
	}
	go endWith(pid)
	p := new(probe)
	go p.watch(context.Background())
	go p.serve(address)
	env := cli.System()
	env.Stdout = p
	return cli.Main(env, []string{"serve", "-c", config})
}

// endWith ends this process when another has ended. A successor inherits neither its
// standard input nor its parent, but is told of the same process.
func endWith(pid int) {
	for ; ; time.Sleep(200 * time.Millisecond) {
		if p, err := os.FindProcess(pid); err != nil || p.Signal(syscall.Signal(0)) != nil {
			os.Exit(1)
		}
	}
}

// serve answers with the figures, as soon as a predecessor has released the address.
func (p *probe) serve(address string) {
	for ; ; time.Sleep(20 * time.Millisecond) {
		if l, err := net.Listen("tcp", address); err == nil {
			_ = http.Serve(l, p)
		}
	}
}
