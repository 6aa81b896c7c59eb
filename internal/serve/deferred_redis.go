package serve

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/serve/deferq"
	"tidegate.dev/tidegate/store/redis"
)

// fitTimeout is how long the start waits for Redis to report its durability.
const fitTimeout = 2 * time.Second

// checkDeferredRedis fails the start if Redis is to keep requests and might lose them. If it does
// not answer, nothing is kept until it does.
func (s *server) checkDeferredRedis() error {
	if !s.deferred.inRedis && !s.deferred.appends {
		return nil
	}
	r, err := s.openDeferredRedis()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fitTimeout)
	defer cancel()
	var unfit *deferq.UnfitError
	if _, err := r.Fit(ctx); errors.As(err, &unfit) {
		return errors.Join(unfit, s.deferred.close())
	}
	return nil
}

// openDeferredRedis opens Redis for kept requests, with its own connection: their bodies must not
// delay decisions.
func (s *server) openDeferredRedis() (*deferq.Redis, error) {
	d := &s.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.redis != nil {
		return d.redis, nil
	}
	at, c := s.config.Store.Redis, s.config.Defer
	r, err := deferq.OpenRedis(deferq.RedisOptions{
		Server: redis.Config{URL: at.URL, Shards: shardsOf(at.Shards), Username: at.Username, PasswordFile: at.PasswordFile},
		Name:   s.nodeName(), Max: c.Max, Results: c.Results, Dead: c.Dead, Takeover: c.Takeover, Deadline: at.Deadline, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	d.redis = r
	return r, nil
}

// openDeferredStore opens the store that keeps requests, and the streams that rules append to; nil
// if there is none.
func (s *server) openDeferredStore() (store deferq.Store, streams deferq.Streams, err error) {
	if s.deferred.inRedis || s.deferred.appends {
		r, err := s.openDeferredRedis()
		if err != nil {
			return nil, nil, err
		}
		store, streams = r, r
	}
	if c := s.config.Defer; c.File != "" {
		file, err := deferq.OpenFile(c.File, deferq.FileOptions{Max: c.Max, Results: c.Results, Dead: c.Dead, Log: s.log})
		if err != nil {
			return nil, nil, err
		}
		store = file
	}
	return store, streams, nil
}

// unmetDefer returns why `defer` of a rule has no effect here; "" if it has. stream is the stream that
// it appends to, if any.
func (s *server) unmetDefer(stream string) string {
	inRedis := s.config.Store.Kind == config.InRedis
	switch {
	case !s.config.Listen.Gateway.Open():
		return "only the gateway can keep requests, and it is not open: they are refused"
	case stream != "" && !inRedis:
		return "there is no Redis to append to, and so requests are refused; name one in `store.redis`"
	case stream != "" && !s.deferred.appends, stream == "" && s.config.Defer.File == "" && inRedis && !s.deferred.inRedis:
		return "no rule did that when this process was started: restart it"
	case stream == "" && s.config.Defer.File == "" && !inRedis:
		return "there is no file to keep requests in, and so they are refused; name one in `defer.file`"
	}
	return ""
}
