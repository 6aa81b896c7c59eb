// Package redis keeps the revisions of a rule set in Redis, where the instances of a fleet follow
// them: the newest is in force, and the last 20 can be inspected and published again. Publishing is
// atomic, and fails if another publisher was faster.
//
// Start with [Open]. A message wakes the instances, and they poll every second, so nothing depends
// on messages. If Redis is unreachable, was emptied or has something else under the key, that is an
// error: followers keep the rules in force.
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
	// URL is one that [redis.Config] accepts, of a single Redis, of Sentinels or of a cluster.
	// #NAME at its end names the rule set; the default is "rules".
	URL string
	// Username is used unless the URL has one. PasswordFile has the password.
	Username, PasswordFile string
	// TLS is used if not nil; a URL that begins with rediss uses TLS without it.
	TLS *tls.Config
}

// Archive is one rule set in Redis.
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
	pollEvery  = time.Second      // between two polls without a message
	aliveEvery = 5 * time.Second  // how often Next returns to show that Redis is reachable
	againAfter = 2 * time.Second  // until a lost subscription is retried
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
		return nil, errors.New("redis: the store has no shelves") // cannot happen: package redis registers itself
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

// split splits the name of the rule set off a URL.
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

// bare returns a URL without user, password and query.
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

// newest returns the newest bundle if its revision is not have.
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

// listen waits for messages about new revisions, until Close.
func (a *Archive) listen() {
	for a.ctx.Err() == nil {
		_ = a.shelf.Watch(a.ctx, func() { // while it fails, polling finds changes
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
