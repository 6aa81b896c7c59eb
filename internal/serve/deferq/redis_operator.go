package deferq

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// find looks for an entry in the keyspaces of all rules. It returns the keyspace, the entry without its
// body, and its number in the line; ErrNone if no rule has it.
func (r *Redis) find(ctx context.Context, id string) (ks *keyspace, e *Entry, n int64, err error) {
	if len(id) != len(NewID()) { // no other string may become part of a key
		return nil, nil, 0, ErrNone
	}
	for range 2 {
		all, err := r.allKeyspaces(ctx)
		if err != nil {
			return nil, nil, 0, err
		}
		var away error // why a rule that may have the entry could not be asked
		for _, ks := range all {
			err := r.isAway(ks.rule)
			if err == nil {
				e, n, err = r.read(ctx, ks, id, false)
			}
			var bad *recordError
			switch {
			case err == nil || errors.As(err, &bad):
				return ks, e, n, err
			case !errors.Is(err, ErrNone):
				away = err
			}
		}
		if away != nil {
			return nil, nil, 0, away
		}
		if r.learn(ctx) != nil || len(r.keyspaces()) == len(all) { // other gateways may have added a rule that is not known here
			break
		}
	}
	return nil, nil, 0, ErrNone
}

// Get implements Store. Entries behind a dropped one still count it as before them until it would
// have been sent.
func (r *Redis) Get(ctx context.Context, id string) (e *Entry, before int, err error) {
	ks, e, n, err := r.find(ctx, id)
	if err != nil || e.State == Done || e.State == Dead {
		return e, 0, err
	}
	got, err := r.run(ctx, ks.rule, "read the place in the line", scripts.place, []string{ks.line(nameOf(e.Line))})
	if err != nil {
		return nil, 0, err
	}
	first, err := strconv.ParseInt(got[0], 10, 64)
	return e, int(max(n-first, 0)), err
}

// listedAtOnce is how many IDs are read at once.
const listedAtOnce = 1000

// List implements Store. Waiting entries come first, the oldest first.
func (r *Redis) List(ctx context.Context, show func(*Entry) bool) error {
	all, err := r.allKeyspaces(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{"waiting", "dead", "done"} {
		for _, ks := range all {
			ids, err := r.ids(ctx, ks, kind)
			if err != nil {
				return err
			}
			for _, id := range ids {
				e, _, err := r.read(ctx, ks, id, false)
				var bad *recordError
				switch {
				case errors.Is(err, ErrNone):
					continue
				case errors.As(err, &bad): // list it, and the others
					e.Reason = bad.Error()
				case err != nil:
					return err
				}
				if !show(e) {
					return nil
				}
			}
		}
	}
	return nil
}

func (r *Redis) ids(ctx context.Context, ks *keyspace, kind string) (all []string, err error) {
	for {
		got, err := r.run(ctx, ks.rule, "list deferred requests", scripts.list, []string{ks.key(kind)}, strconv.Itoa(len(all)), strconv.Itoa(len(all)+listedAtOnce-1))
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
		if len(got) < listedAtOnce {
			return all, nil
		}
	}
}

// Retry implements Store. The clock of Redis decides when a waiting entry is due.
func (r *Redis) Retry(ctx context.Context, id string, _ time.Time) error {
	ks, e, _, err := r.find(ctx, id)
	if err != nil {
		return err
	}
	name := nameOf(e.Line)
	got, err := r.run(ctx, ks.rule, "retry a deferred request", scripts.retry, []string{ks.key("turns"), ks.line(name), ks.entry(id)}, name)
	if err != nil {
		return err
	}
	switch got[0] {
	case "":
		return ErrNone
	case "trying":
		return ErrBusy
	case "done":
		return ErrEnded
	case "dead":
		return r.revive(ctx, ks, name, e)
	}
	r.nudge()
	return nil
}

// revive appends a dead entry to its line.
func (r *Redis) revive(ctx context.Context, ks *keyspace, name string, e *Entry) error {
	if e.Request.Method == "" {
		return ErrEnded // the request itself was removed
	}
	body, _, err := r.read(ctx, ks, e.ID, true) // a dead entry is not marked
	if err != nil {
		return err
	}
	e.Request.Body = body.Request.Body
	e.State, e.Next, e.Reason, e.Ended, e.Result = Waiting, time.Time{}, "", time.Time{}, nil
	record, err := encode(e)
	if err != nil {
		return err
	}
	got, err := r.run(ctx, ks.rule, "revive a deferred request", scripts.revive, []string{
		ks.key("meta"), ks.key("turns"), ks.key("waiting"), ks.key("dead"), ks.key("lines"), ks.line(name), ks.entry(e.ID),
	}, name, e.ID, string(record), strconv.FormatInt(e.size(), 10), micros(e.Keep))
	if err != nil {
		return err
	}
	if got[0] != "1" {
		return ErrNone
	}
	r.nudge()
	return nil
}

// Drop implements Store.
func (r *Redis) Drop(ctx context.Context, id, reason string) error {
	ks, e, _, err := r.find(ctx, id)
	if err != nil && !(errors.Is(err, ErrUnreadable) && e.State == Dead) { // which can be removed as it is
		return err
	}
	switch e.State {
	case Done:
		return ErrEnded
	case Dead:
		return r.forget(ctx, ks, []string{id})
	}
	e.State, e.Reason, e.Ended, e.Request, e.Checks = Dead, reason, time.Now(), Request{}, nil // the request itself is removed
	return r.end(ctx, e, "", true)
}

// Stats implements Store.
func (r *Redis) Stats(ctx context.Context) (s Stats, err error) {
	r.mu.Lock()
	s = Stats{Max: r.o.Max, Rules: make(map[string]int64), Unwritten: int64(len(r.unwritten)), Err: r.unfit}
	for _, a := range r.away {
		if s.Err == nil {
			s.Err = a.err
		}
	}
	known := r.known
	r.mu.Unlock()
	if !known && r.isAway("") != nil { // metrics do not wait for it
		return s, nil
	}
	all, err := r.allKeyspaces(ctx)
	if err != nil {
		s.Err = err
		return s, nil
	}
	for _, ks := range all {
		if r.isAway(ks.rule) != nil {
			continue
		}
		got, err := r.run(ctx, ks.rule, "count deferred requests", scripts.stats, []string{ks.key("meta"), ks.key("turns"), ks.key("waiting"), ks.key("done"), ks.key("dead")})
		if err != nil {
			s.Err = err
			continue
		}
		var n [6]int64 // waiting, bytes, lines, done, dead, age of the oldest
		for i := range n {
			if n[i], err = strconv.ParseInt(got[i], 10, 64); err != nil {
				return s, err
			}
		}
		s.Bytes, s.Lines, s.Done, s.Dead = s.Bytes+n[1], s.Lines+n[2], s.Done+n[3], s.Dead+n[4]
		if s.Waiting += n[0]; n[0] > 0 {
			s.Rules[ks.rule] = n[0]
		}
		if at := time.Now().Add(-time.Duration(n[5]) * time.Microsecond); n[5] >= 0 && (s.Oldest.IsZero() || at.Before(s.Oldest)) {
			s.Oldest = at
		}
	}
	return s, nil
}
