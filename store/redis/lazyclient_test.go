package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Attempts to make a client of a cluster do not share the list of addresses: a client shuffles
// it, while the one before, which found no server, may still be reading it.
func TestAttemptsShareNoAddresses(t *testing.T) {
	c := Config{Cluster: true, DialTimeout: time.Second}
	for i := range 8 {
		c.Addrs = append(c.Addrs, fmt.Sprint("127.0.0.1:", 1+i)) // where nobody listens
	}
	was := slices.Clone(c.Addrs)
	l := lazyClient{option: clientOption(&c, &dialer{timeout: time.Second})}
	defer l.close()
	for range 5 {
		l.trying = make(chan struct{})
		l.connect()
	}
	if !slices.Equal(l.option.InitAddress, was) {
		t.Errorf("the addresses are %q by now, and were %q", l.option.InitAddress, was)
	}
}
