// Package redis keeps the revisions of a rule set in Redis, where the instances of a fleet
// follow them: the newest one is in force, and the last 20 can be looked at and published
// again. Publishing is atomic, and says so if somebody else was faster.
//
// Start with [Open]. Instances are woken by a message of Redis, and look every second, so
// that nothing depends on messages. A Redis that is away, was emptied or keeps something else
// is an error: whoever follows keeps what is in force.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/redis"
)

// Config of an Archive.
type Config struct {
	// URL is one that [redis.Config] takes, of a single Redis, of Sentinels or of a cluster.
	// #NAME behind it names the rule set; without it that is "rules".
	URL string
	// Username is used unless the URL has one, and PasswordFile has the password.
	Username, PasswordFile string
	// TLS is used if not nil; a URL that begins with rediss uses TLS without it.
	TLS *tls.Config
}

// Archive is the rule set of that name in Redis.
type Archive struct {
	name  string
	store *redis.Store
	shelf chain.Shelf

	listening sync.Once
	woken     chan struct{}
	stop      context.CancelFunc
	ctx       context.Context // until Close
	done      sync.WaitGroup

	poll, alive, again time.Duration
}

var _ source.Archive = (*Archive)(nil)

const (
	pollEvery  = time.Second      // between two looks, when nobody wakes us
	aliveEvery = 5 * time.Second  // how often Next says that Redis is there
	againAfter = 2 * time.Second  // until a lost subscription is tried again
	deadline   = 10 * time.Second // of a command
)

// Open checks c and returns an Archive. It does not wait for Redis.
func Open(c Config) (*Archive, error) {
	url, set, err := split(c.URL)
	if err != nil {
		return nil, err
	}
	store, err := redis.Open(redis.Config{URL: url, Username: c.Username, PasswordFile: c.PasswordFile, TLS: c.TLS, Deadline: deadline})
	if err != nil {
		return nil, err
	}
	shared, ok := chain.AsShared(store)
	if !ok {
		return nil, errors.New("redis: the store has no shelves") // it registers itself
	}
	a := &Archive{
		name: bare(url) + "#" + set, store: store, shelf: shared.Shelf("rules:" + set), woken: make(chan struct{}, 1),
		poll: pollEvery, alive: aliveEvery, again: againAfter,
	}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a, nil
}

// Check reports what is wrong with a URL. It neither connects nor reads files.
func Check(url string) error {
	url, _, err := split(url)
	if err != nil {
		return err
	}
	return redis.CheckURL(url)
}

// split takes the name of the rule set off a URL.
func split(text string) (url, set string, err error) {
	url, set, named := strings.Cut(text, "#")
	if !named {
		return url, "rules", nil
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if set == "" || len(set) > 64 || strings.Trim(set, letters) != "" {
		return "", "", fmt.Errorf("#%.70s is not the name of a rule set: use up to 64 letters, digits and ._-", set)
	}
	return url, set, nil
}

// bare returns a URL without user, password and what stands behind the question mark.
func bare(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	hosts, path, found := strings.Cut(rest, "/")
	hosts = hosts[strings.LastIndex(hosts, "@")+1:]
	if found {
		hosts += "/" + path
	}
	return scheme + "://" + hosts
}

// Name implements [source.Origin].
func (a *Archive) Name() string { return a.name }

// Close implements [source.Origin].
func (a *Archive) Close() error {
	a.stop()
	a.done.Wait()
	return a.store.Close()
}

// Next implements [source.Origin].
func (a *Archive) Next(ctx context.Context, have string) (*source.Bundle, error) {
	a.listening.Do(func() { a.done.Go(a.listen) })
	for end := time.Now().Add(a.alive); ; {
		b, err := a.newest(ctx, have)
		if b != nil || err != nil {
			return b, err
		}
		wait := time.NewTimer(a.poll - a.poll/10 + rand.N(a.poll/5+1))
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, ctx.Err()
		case <-a.woken:
			wait.Stop()
		case <-wait.C:
			if time.Now().After(end) {
				return nil, nil
			}
		}
	}
}

// newest returns the newest bundle if that is another one than have.
func (a *Archive) newest(ctx context.Context, have string) (*source.Bundle, error) {
	for {
		v, err := a.shelf.Newest(ctx)
		if err != nil {
			return nil, err
		}
		if v.Number == 0 {
			return nil, fmt.Errorf("%s has no rules: publish some with tidegate rules push", a.name)
		}
		e, mains, err := edition(v)
		if err != nil || e.Revision == have {
			return nil, a.of(v, err)
		}
		b, err := a.read(ctx, v, e, mains)
		if errors.Is(err, chain.ErrNotKept) {
			if now, err := a.shelf.Newest(ctx); err == nil && now.ID != v.ID {
				continue // it was replaced meanwhile
			}
		}
		return b, err
	}
}

// listen waits for messages that others have published, until Close.
func (a *Archive) listen() {
	for a.ctx.Err() == nil {
		_ = a.shelf.Watch(a.ctx, func() { // while it fails, looks find what is new
			select {
			case a.woken <- struct{}{}:
			default:
			}
		})
		select {
		case <-a.ctx.Done():
		case <-time.After(a.again/2 + rand.N(a.again)):
		}
	}
}
