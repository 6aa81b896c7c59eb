package redis

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// link is the one client of a Store. It is made when first used, and again after a
// pause while that fails: a client for Sentinels or a cluster cannot be had before one
// of them has answered. From then on it reconnects by itself.
type link struct {
	option rueidis.ClientOption
	client atomic.Pointer[rueidis.Client] // nil: none yet

	mu     sync.Mutex
	trying chan struct{} // closed when the try under way has ended; nil: none is
	err    error         // of the last try
	next   time.Time     // not before
	closed bool
}

// How long a connection may be silent with something to answer, and how often it is
// asked for a sign of life. Callers do not wait that long: they have their deadlines.
const (
	silence   = 3 * time.Second
	keepAlive = time.Second
)

// retryPause is between two tries to make a client, and up to twice that.
const retryPause = 100 * time.Millisecond

func clientOption(c *Config, d *dialer) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress: c.Addrs,
		Username:    c.Username,
		Password:    c.Password,
		SelectDB:    c.DB,
		TLSConfig:   c.TLS,
		ClientName:  "tidegate",
		Dialer:      net.Dialer{Timeout: c.DialTimeout, KeepAlive: keepAlive},
		DialCtxFn:   d.dial,

		AuthCredentialsFn: c.credentials(d),

		ConnWriteTimeout: silence,
		DisableRetry:     true, // what was charged twice cannot be taken back
		DisableCache:     true,
		// Otherwise a lone caller that gives up closes the connection.
		AlwaysPipelining: true,
	}
	switch {
	case c.Master != "":
		o.Sentinel = rueidis.SentinelOption{
			MasterSet: c.Master, Username: c.SentinelUsername, Password: c.SentinelPassword,
			TLSConfig: c.TLS, Dialer: o.Dialer, ClientName: o.ClientName,
			// An announcement of a new master that was missed would be missed for good.
			TopologyRefreshInterval: 5 * time.Second,
		}
		o.Sentinel.Dialer.Resolver = sentinelResolver
	case c.Cluster:
		o.ShuffleInit = true
		o.ClusterOption.MaxMovedRedirections = 5
	default:
		o.ForceSingleClient = true
	}
	return o
}

// get is the client, made if need be. It waits no longer than ctx.
func (l *link) get(ctx context.Context) (rueidis.Client, error) {
	for {
		if client := l.client.Load(); client != nil {
			return *client, nil
		}
		trying, err := l.trial()
		if err != nil {
			return nil, err
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// trial is when the try under way ends, which it may have to start.
func (l *link) trial() (ended <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errClosed
	case l.trying != nil:
	case time.Now().Before(l.next) && l.client.Load() == nil:
		return nil, l.err
	default:
		l.trying = make(chan struct{})
		go l.try()
	}
	return l.trying, nil
}

// try makes a client, once.
func (l *link) try() {
	client, err := rueidis.NewClient(l.option)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.trying)
	l.trying = nil
	switch {
	case l.closed && client != nil:
		client.Close()
	case l.client.Load() != nil: // another one was quicker
	case client != nil: // a lone Redis need not answer for that
		l.client.Store(&client)
	default:
		l.err = err
		l.next = time.Now().Add(retryPause + rand.N(retryPause))
	}
}

func (l *link) close() {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if client := l.client.Load(); client != nil && !closed {
		(*client).Close() // it says so itself to whoever asks from then on
	}
}
