package redis

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// lazyClient is the one client of a Store. It is made when first used; while that fails, it is
// tried again after a pause: a client for Sentinels or a cluster cannot be made before one
// of them has answered. From then on it reconnects by itself.
type lazyClient struct {
	option rueidis.ClientOption
	client atomic.Pointer[rueidis.Client] // nil until it is made

	mu     sync.Mutex
	trying chan struct{} // closed when the attempt under way, or the one that made the client, has ended; otherwise nil
	err    error         // of the last attempt
	next   time.Time     // no attempt before this
	closed bool
}

// How long a connection with requests under way may be silent, and how often it is sent a
// ping. Callers do not wait that long: they have their deadlines.
const (
	silence   = 3 * time.Second
	keepAlive = time.Second
)

// retryPause is the shortest pause between two attempts to make a client; the longest is
// twice that.
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
		DisableRetry:     true, // a retry might charge twice
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

// get returns the client, which it makes if needed. It waits no longer than ctx.
func (l *lazyClient) get(ctx context.Context) (rueidis.Client, error) {
	for {
		if client := l.client.Load(); client != nil {
			return *client, nil
		}
		trying, err := l.attempt()
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

// attempt returns a channel that is closed when the attempt under way ends. It starts one if
// there is none, and none has made the client.
func (l *lazyClient) attempt() (ended <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errClosed
	case l.trying != nil:
	case time.Now().Before(l.next):
		return nil, l.err
	default:
		l.trying = make(chan struct{})
		go l.connect()
	}
	return l.trying, nil
}

// connect tries once to make a client.
func (l *lazyClient) connect() {
	option := l.option
	// A client shuffles the addresses, and one that could not be made may still be reading them.
	option.InitAddress = slices.Clone(option.InitAddress)
	client, err := rueidis.NewClient(option)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.trying)
	switch {
	case l.closed && client != nil:
		client.Close()
	case client != nil: // a single Redis need not have answered
		l.client.Store(&client)
	default:
		l.trying, l.err = nil, err
		l.next = time.Now().Add(retryPause + rand.N(retryPause))
	}
}

func (l *lazyClient) close() {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if client := l.client.Load(); client != nil && !closed {
		(*client).Close() // from then on its calls return an error
	}
}
