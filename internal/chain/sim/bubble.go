package sim

import (
	"flag"
	"sync"
	"testing"
	"testing/synctest"
)

// Bubble runs f in virtual time and returns when f and every goroutine it started have
// ended. A test uses one around synctest.Test; a program uses [VirtualTime].
type Bubble func(f func())

// VirtualTime is the Bubble of a program that is not a test. Several may run at a time.
func VirtualTime(f func()) {
	synctest.Test(tester(), func(*testing.T) { f() })
}

// tester returns the *testing.T without which package synctest makes no bubble. testing.Main
// is the one documented way to get one outside of `go test`. It ends the process when its
// test returns, so that test never does.
var tester = sync.OnceValue(func() *testing.T {
	if !flag.Parsed() {
		_ = flag.CommandLine.Parse(nil) // else testing.Main would read the arguments of the command
	}
	given := make(chan *testing.T)
	go testing.Main(
		func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "sim", F: func(t *testing.T) {
			given <- t
			select {}
		}}}, nil, nil)
	return <-given
})
