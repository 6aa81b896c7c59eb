package deferq

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// keepClaims renews the claims of this gateway.
func (r *Redis) keepClaims() { r.regularly(r.renew) }

// tend does the other regular work: it retries changes that Redis has not accepted, looks for new
// rules, purges old entries and checks whether Redis is fit.
func (r *Redis) tend() {
	var learned, check time.Time // when the rules were read, and when to check again
	r.regularly(func(ctx context.Context) {
		now := time.Now()
		r.writeEnds(ctx, false)
		if now.Sub(learned) >= rulesEvery && r.isAway("") == nil && r.learn(ctx) == nil {
			learned = now
		}
		if now = time.Now(); now.Before(check) {
			return
		}
		if r.checkFit(ctx) != nil { // the longer that took, the less often
			check = time.Now().Add(max(awayFor, 2*time.Since(now)))
			return
		}
		check = now.Add(purgeEvery)
		r.purge(ctx)
	})
}

// regularly calls f several times within a takeover, until Close.
func (r *Redis) regularly(f func(context.Context)) {
	tick := time.NewTicker(min(r.o.Takeover/4, time.Second))
	defer tick.Stop()
	for {
		f(r.life)
		select {
		case <-r.life.Done():
			return
		case <-tick.C:
		}
	}
}

// renew renews the claims on all lines that this process tries. It asks about all rules at once, so
// that servers that hang delay no renewal at others.
func (r *Redis) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(r.o.Takeover/4, time.Second/4))
	defer cancel()
	var asked sync.WaitGroup
	for _, ks := range r.keyspaces() {
		keys, args := []string{ks.key("turns")}, []string{r.consumer, micros(r.o.Takeover)}
		r.mu.Lock()
		for l, sid := range r.held {
			if l.rule == ks.rule {
				keys, args = append(keys, ks.line(l.name)), append(args, l.name, sid)
			}
		}
		r.mu.Unlock()
		if len(keys) > 1 { // also if its server has just failed: another gateway may take over what is not renewed
			asked.Go(func() {
				_, _ = r.run(ctx, ks.rule, "renew the claims of deferred requests", scripts.renew, keys, args...) // again at the next tick
			})
		}
	}
	asked.Wait()
}

// settle makes a change now, or when Redis accepts it; the line is held until then.
func (r *Redis) settle(l heldLine, change func(context.Context) error) {
	if err := change(context.Background()); err != nil {
		r.mu.Lock()
		r.unwritten = append(r.unwritten, unwritten{l, change})
		r.mu.Unlock()
		return
	}
	r.release(l)
}

func (r *Redis) release(l heldLine) {
	r.mu.Lock()
	delete(r.held, l)
	r.mu.Unlock()
	r.nudge()
}

// writeEnds retries unwritten changes. With last, it also tries a Redis that has just failed.
func (r *Redis) writeEnds(ctx context.Context, last bool) {
	r.mu.Lock()
	all := slices.Clone(r.unwritten)
	r.mu.Unlock()
	for _, one := range all {
		if !last && r.isAway(one.line.rule) != nil || one.make(ctx) != nil {
			continue
		}
		r.mu.Lock()
		r.unwritten = slices.DeleteFunc(r.unwritten, func(u unwritten) bool { return u.line == one.line }) // a line has at most one
		r.mu.Unlock()
		r.release(one.line)
	}
}

// purge removes entries that ended long ago.
func (r *Redis) purge(ctx context.Context) {
	for _, ks := range r.keyspaces() {
		if r.isAway(ks.rule) != nil {
			continue
		}
		for kind, keep := range map[string]time.Duration{"done": r.o.Results, "dead": r.o.Dead} {
			for {
				old, err := r.run(ctx, ks.rule, "look for old results", scripts.old, []string{ks.key(kind)}, micros(keep), "100")
				if err != nil || len(old) == 0 || r.forget(ctx, ks, old) != nil {
					break
				}
			}
		}
	}
}

// trim removes the entries that ended first, until the rest fits into the allowed bytes.
func (r *Redis) trim(ctx context.Context, ks *keyspace) error {
	for range 100 { // a few at a time
		first, err := r.run(ctx, ks.rule, "look for results to forget", scripts.surplus, []string{ks.key("meta"), ks.key("done"), ks.key("dead")}, strconv.FormatInt(r.o.Max, 10))
		if err != nil || len(first) == 0 {
			return err
		}
		if err := r.forget(ctx, ks, first); err != nil {
			return err
		}
	}
	return nil
}

// forget removes entries that have ended.
func (r *Redis) forget(ctx context.Context, ks *keyspace, ids []string) error {
	keys := []string{ks.key("meta"), ks.key("done"), ks.key("dead")}
	for _, id := range ids {
		keys = append(keys, ks.entry(id), ks.body(id))
	}
	_, err := r.run(ctx, ks.rule, "forget results", scripts.forget, keys, ids...)
	return err
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
