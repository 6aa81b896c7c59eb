package proxies

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/checkapi"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// door is the check API in this process, where a test sees what the rules were asked.
type door struct {
	addr    string
	handler http.Handler
	server  *http.Server

	mu    sync.Mutex
	asked [][]string // names of the limits of each decision
	dials int
}

// newDoor serves rules to proxies on this machine.
func newDoor(t *testing.T, text string) *door {
	t.Helper()
	return newDoorOn(t, text, memory.New())
}

func newDoorOn(t *testing.T, text string, store tidegate.Store) *door {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := new(door)
	gate := tidegate.NewGate(set, store).Observe(d.decided)
	local := httplimit.ClientIP{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	d.handler = checkapi.New(checkapi.Options{Desk: desk.New(gate), HTTP: httplimit.Options{ClientIP: local}})
	d.addr = "127.0.0.1:0"
	d.start(t)
	t.Cleanup(d.stop)
	return d
}

// start serves; after stop, on the same address.
func (d *door) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	d.addr = l.Addr().String()
	d.server = &http.Server{Handler: d.handler, ConnState: d.changed}
	server := d.server
	go func() { _ = server.Serve(l) }() // ends with stop
}

func (d *door) stop() { d.server.Close() }

func (d *door) decided(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := []string{}
	for _, c := range checks {
		names = append(names, c.Limit.Name)
	}
	d.asked = append(d.asked, names)
}

func (d *door) changed(_ net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if state == http.StateNew {
		d.dials++
	}
}

// decisions returns what was asked since the last call.
func (d *door) decisions() [][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.asked
	d.asked = nil
	return got
}

// connections is how many were opened so far.
func (d *door) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dials
}
