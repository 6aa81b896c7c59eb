package deferq

import (
	"context"
	"fmt"
	"strings"
)

// UnfitError says why a Redis must not keep requests: it could lose accepted ones.
type UnfitError struct{ problems []string }

func (e *UnfitError) Error() string {
	return "Redis cannot keep deferred requests: " + strings.Join(e.problems, "; ") +
		". Or name a file of this machine in `defer.file`"
}

// Fit checks the durability of Redis. The error is an [*UnfitError] if it might lose accepted
// requests. unchecked is what an operator has to check, since Redis does not tell.
func (r *Redis) Fit(ctx context.Context) (unchecked []string, err error) {
	servers, err := r.scripts.Durability(ctx)
	if err != nil {
		return nil, err
	}
	var bad UnfitError
	for _, s := range servers {
		switch {
		case !s.AOF:
			bad.problems = append(bad.problems, s.Server+" keeps nothing on disk at once: set `appendonly yes` and `appendfsync always`")
		case s.Fsync == "":
			unchecked = append(unchecked, fmt.Sprintf("%s does not let Tidegate run CONFIG GET: make sure that its appendfsync is always", s.Server))
		case s.Fsync != "always":
			bad.problems = append(bad.problems, fmt.Sprintf("a crash of %s may lose the last second, as its appendfsync is %s: set `appendfsync always`", s.Server, s.Fsync))
		}
		if s.Policy != "noeviction" {
			bad.problems = append(bad.problems, fmt.Sprintf("%s drops keys when its memory is full, as its maxmemory-policy is %s: set `maxmemory-policy noeviction`", s.Server, s.Policy))
		}
	}
	if len(bad.problems) > 0 {
		return nil, &bad
	}
	return unchecked, nil
}

// checkFit checks whether requests may be kept from now on. If Redis does not answer, it returns the
// error, and the result of the last check stays.
func (r *Redis) checkFit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	unchecked, err := r.Fit(ctx)
	r.mu.Lock()
	was := r.unfit
	if _, unfit := err.(*UnfitError); err == nil || unfit {
		r.unfit = err
	}
	now := r.unfit
	r.mu.Unlock()
	switch {
	case was == errUnknown && now == nil:
		for _, text := range unchecked {
			r.o.Log.Warn("deferred requests are as durable as Redis: " + text)
		}
	case now != nil && now != errUnknown && (was == nil || was.Error() != now.Error()):
		r.o.Log.Error("requests are refused that rules would defer", "err", now)
	case now == nil && was != nil:
		r.o.Log.Info("requests are deferred again")
	}
	return err
}

// fit returns why nothing may be kept; it checks first if that was not done yet.
func (r *Redis) fit(ctx context.Context) error {
	err := r.isFit()
	if err == errUnknown {
		if err := r.checkFit(ctx); err != nil {
			return err
		}
		return r.isFit()
	}
	return err
}

// isFit returns the result of the last check; errUnknown before the first.
func (r *Redis) isFit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unfit
}
