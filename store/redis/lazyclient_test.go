package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
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

// A caller that has looked for a client just before it was made gets that one, and makes no other: the other's
// connections would never be closed.
func TestOneClientIsMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"single":  {Addrs: []string{testdep.Redis(t).Addr}, DialTimeout: patient},
		"cluster": clusterOf(testdep.RedisCluster(t, 3, 0)),
	} {
		l := lazyClient{option: clientOption(&c, &dialer{timeout: patient})}
		var dials, closes atomic.Int64
		dial := l.option.DialCtxFn
		l.option.DialCtxFn = func(ctx context.Context, addr string, by *net.Dialer, config *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, addr, by, config)
			if err == nil {
				dials.Add(1)
				conn = countedConn{conn, &closes}
			}
			return conn, err
		}
		client, err := l.get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // as get does where it has found none
			ended, err := l.attempt()
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			default:
				t.Errorf("%s: another client is being made", name)
				<-ended
			}
			if again, err := l.get(t.Context()); err != nil || again != client {
				t.Errorf("%s: %v beside %v, %v", name, again, client, err)
			}
		}
		l.close()
		eventually(t, func() error {
			if made, closed := dials.Load(), closes.Load(); made != closed {
				return fmt.Errorf("%s: %d of %d connections are closed", name, closed, made)
			}
			return nil
		})
		if _, err := l.attempt(); err != errClosed {
			t.Errorf("%s: an attempt after the end: %v", name, err)
		}
	}
}

// countedConn counts connections that are closed.
type countedConn struct {
	net.Conn
	closed *atomic.Int64
}

func (c countedConn) Close() error {
	err := c.Conn.Close()
	if err == nil { // the first time
		c.closed.Add(1)
	}
	return err
}
