package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/served"
)

// connections returns how many connections of clients the gateway at that URL holds, by the
// tables of the kernel: a client that reads slowly does not see itself that it was cut off.
func connections(gateway string) (n int, err error) {
	u, err := url.Parse(gateway)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return 0, err
	}
	raw, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, err
	}
	const listening, orphan = "0A", "0"
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line) // number, local, remote, state, queues, timer, retries, user, timeout, inode
		if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] != listening && fields[9] != orphan {
			n++
		}
	}
	return n, nil
}

// few is how many connections and goroutines may be there without an attack: those of
// honest clients, and of this program when it asks.
const few = 10

// awaitConnections returns when the gateway holds more than a few connections, or no more
// than that.
func awaitConnections(gateway string, many bool, within time.Duration) error {
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		n, err := connections(gateway)
		switch {
		case err != nil:
			return err
		case n > few == many:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("it holds %d connections after %s", n, within)
		}
	}
}

func goroutines(g *served.Gateway) (n int, err error) {
	res, err := http.Get(g.Admin + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = fmt.Fscanf(res.Body, "goroutine profile: total %d", &n)
	return n, err
}

// settled fails unless the process soon holds what it held before an attack, and all slots
// are free.
func settled(g *served.Gateway, before int) error {
	if err := awaitConnections(g.URL, false, leeway); err != nil {
		return err
	}
	for end := time.Now().Add(leeway); ; time.Sleep(50 * time.Millisecond) {
		now, err := goroutines(g)
		switch {
		case err != nil:
			return err
		case now <= before+few:
			if err := ask(newClient(), g.URL+"/held/a"); err != nil {
				return fmt.Errorf("a slot is not free: %w", err)
			}
			return nil
		case time.Now().After(end):
			return fmt.Errorf("it has %d goroutines, and had %d before", now, before)
		}
	}
}
