package redis

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// endpoint is what one URL connects to: a Redis, the master that Sentinels name, or a
// cluster. A Store has one, or one for each of its shards.
type endpoint struct {
	name   string // of a shard; "" if there is no other
	client lazyClient
	dialer *dialer
	silent time.Duration // how long it may say nothing while it owes an answer before it counts as gone
	retry  atomic.Int64  // in ns: the earliest time of the next lookAgain
}

func newEndpoint(name string, c *Config) *endpoint {
	d := &dialer{name: name, timeout: c.DialTimeout}
	return &endpoint{name: name, client: lazyClient{option: clientOption(c, d)}, dialer: d, silent: c.GoneAfter}
}

// home returns the endpoint that has a key.
func (s *Store) home(key string) *endpoint {
	if !s.sharded() {
		return s.endpoints[0]
	}
	return s.topology.current.Load().owners[slotOfKey(key)].endpoint
}

// sharded reports whether counters are spread over several endpoints.
func (s *Store) sharded() bool { return s.shards > 0 }

// apart reports whether counters of different subjects may live where no script reaches both:
// in slots of a cluster, or on shards.
func (s *Store) apart() bool { return s.cluster || s.sharded() }

// trouble returns why the endpoint cannot be used, as far as its connections show.
func (e *endpoint) trouble() error {
	if err := e.dialer.lastError.Load(); err != nil {
		return *err
	}
	return nil
}

// gone reports whether the endpoint cannot be connected to, or is mute.
func (e *endpoint) gone() bool { return e.trouble() != nil || e.mute() }

// mute reports whether the endpoint has said nothing for longer than silent since it was asked
// something.
func (e *endpoint) mute() bool {
	heard, asked := e.dialer.exchanges.all.last()
	return asked.After(heard) && time.Since(asked) > e.silent
}

// untilGone returns a context that ends with ctx, or when the endpoint is gone. Time in which this
// process stood still does not count.
func (e *endpoint) untilGone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var look func()
	look = func() {
		switch {
		case ctx.Err() != nil:
		case e.gone():
			cancel()
		default:
			time.AfterFunc(e.silent/4, look)
		}
	}
	time.AfterFunc(e.silent, look)
	return ctx, cancel
}

// leftOut reports whether a former owner is not to be asked, because it is gone.
func (e *endpoint) leftOut() bool {
	if !e.gone() {
		return false
	}
	e.lookAgain()
	return true
}

// lookAgain finds out whether an endpoint that is gone is back, at most once a second. Nobody waits for
// that: a call that needs a new connection, or joins one that is making it, is not ended by its context.
func (e *endpoint) lookAgain() {
	pause := max(time.Second, e.dialer.timeout)
	now, next := time.Now(), e.retry.Load()
	if now.UnixNano() < next || !e.retry.CompareAndSwap(next, now.Add(pause).UnixNano()) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), pause)
		defer cancel()
		if client, err := e.client.get(ctx); err == nil {
			client.Do(ctx, client.B().Ping().Build()) // any answer is heard
		}
	}()
}

// endpointError is an error of a call to one of several endpoints.
type endpointError struct {
	at *endpoint
	error
}

func (e endpointError) Unwrap() error { return e.error }

// failed adds to an error where it happened, if there are several endpoints.
func (e *endpoint) failed(err error) error {
	if err == nil || e.name == "" {
		return err
	}
	return endpointError{e, err}
}

// troubleOf returns what is wrong with the connection that a call failed on, if that is known.
func (s *Store) troubleOf(err error) error {
	if !s.sharded() {
		return s.endpoints[0].trouble()
	}
	var failed endpointError
	if errors.As(err, &failed) {
		return failed.at.trouble()
	}
	return nil
}
