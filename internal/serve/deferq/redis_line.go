package deferq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Busy implements Store. The error means that it is unknown: a Redis that has just failed is not
// asked again for a moment, so a live request waits for it at most once.
func (r *Redis) Busy(ctx context.Context, l Line) (bool, error) {
	if err := r.isAway(l.Rule); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Deadline)
	defer cancel()
	ks := r.keyspaceOf(l.Rule)
	got, err := r.run(ctx, ks.rule, "look whether requests are kept", scripts.busy, []string{ks.line(nameOf(l))})
	return err == nil && got[0] == "1", err
}

// Room implements Store.
func (r *Redis) Room(ctx context.Context, l Line, size int64, b Bounds) error {
	if err := r.fit(ctx); err != nil {
		return err
	}
	if err := r.isAway(l.Rule); err != nil {
		return err
	}
	e := &Entry{Line: l}
	verdict, err := r.run(ctx, l.Rule, "look for a place", scripts.room, r.addKeys(r.keyspaceOf(l.Rule), e), r.addArgs(e, size, b, "")...)
	if err == nil && verdict[0] == "full" {
		return ErrFull
	}
	return err
}

// addKeys returns the keys of room.lua.
func (r *Redis) addKeys(ks *keyspace, e *Entry) []string {
	return []string{
		ks.key("meta"), ks.key("turns"), ks.key("waiting"), ks.key("done"), ks.key("dead"), ks.key("lines"),
		ks.line(nameOf(e.Line)), ks.entry(e.ID), ks.body(e.ID),
	}
}

// addArgs returns the arguments of room.lua.
func (r *Redis) addArgs(e *Entry, size int64, b Bounds, record string) []string {
	args := []string{nameOf(e.Line), e.ID}
	for _, n := range []int64{size, b.Places, b.PerKey, b.KeyBytes, r.o.Max} {
		args = append(args, strconv.FormatInt(n, 10))
	}
	return append(args, micros(e.Keep), record, string(e.Request.Body))
}

// Add implements Store. Redis answers when its disk has the entry. Without an answer it is unknown
// whether the entry was added: it is removed as soon as Redis answers, and Add fails.
func (r *Redis) Add(ctx context.Context, e *Entry, bounds Bounds) (before int, err error) {
	if err := r.fit(ctx); err != nil {
		return 0, err
	}
	e.V, e.State = Version, Waiting
	record, err := encode(e)
	if err != nil {
		return 0, err
	}
	if len(record) > maxRecord {
		return 0, ErrFull
	}
	ks, err := r.register(ctx, e.Line.Rule)
	if err != nil {
		return 0, err
	}
	keys, args := r.addKeys(ks, e), r.addArgs(e, e.size(), bounds, string(record))
	for range 100 { // ended entries make room, a few at a time
		got, err := r.run(ctx, ks.rule, "keep the request", scripts.add, keys, args...)
		switch {
		case err != nil:
			go r.takeBack(e.Line, e.ID)
			return 0, err
		case got[0] == "kept":
			r.nudge()
			return strconv.Atoi(got[1])
		case got[0] == "full" || len(got) == 1:
			return 0, ErrFull
		}
		if err := r.forget(ctx, ks, got[1:]); err != nil {
			return 0, err
		}
	}
	return 0, ErrFull
}

// takeBack removes an entry that may have been added although Redis did not answer.
func (r *Redis) takeBack(l Line, id string) {
	for r.life.Err() == nil {
		err := r.end(r.life, &Entry{V: Version, ID: id, Line: l, State: Dead, Reason: "its client was told that it is not kept"}, "", true)
		if err == nil {
			_ = r.forget(r.life, r.keyspaceOf(l.Rule), []string{id}) // if this fails, it stays as a dead letter
		}
		if err == nil || errors.Is(err, ErrNone) {
			return
		}
		_ = await(r.life, nil, time.Now().Add(awayFor)) // the loop looks whether it has ended
	}
}

// Next implements Store. One goroutine at a time looks for a line.
func (r *Redis) Next(ctx context.Context) (*Entry, error) {
	for {
		select {
		case r.polling <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		ks, name, wait, err := r.turn(ctx)
		if err != nil {
			wait = awayFor
		}
		if name == "" {
			err := await(ctx, r.wake, time.Now().Add(wait))
			<-r.polling
			if err != nil {
				return nil, err
			}
			continue
		}
		<-r.polling
		// Finish the claim even if ctx ends: no other gateway gets the line for a while.
		if e := r.first(context.WithoutCancel(ctx), ks, name); e != nil {
			return e, nil
		}
	}
}

// turn returns the next line, or "" and how long to wait. Rules take turns.
func (r *Redis) turn(ctx context.Context) (ks *keyspace, name string, wait time.Duration, err error) {
	wait = pollEvery
	for _, ks := range r.keyspaces() {
		if ctx.Err() != nil {
			return nil, "", 0, ctx.Err()
		}
		if r.isAway(ks.rule) != nil {
			continue
		}
		// If the answer were lost, the line would be left alone until the takeover.
		got, err := r.run(context.WithoutCancel(ctx), ks.rule, "look for deferred requests", scripts.turn, []string{ks.key("turns")}, micros(r.o.Takeover), micros(longestWait))
		if err != nil { // rules on other servers continue
			continue
		}
		if got[0] != "" {
			r.passTurn(ks)
			return ks, got[0], 0, nil
		}
		if us, err := strconv.ParseInt(got[1], 10, 64); err == nil && us >= 0 {
			wait = min(wait, time.Duration(us)*time.Microsecond)
		}
	}
	return nil, "", wait, nil
}

// longestWait exceeds every wait of a line. If one seems to wait longer, the clock of Redis was set
// back.
const longestWait = maxRetryAfter + time.Second

// first claims the first entry of a line; nil if there is none, another gateway has it, or Redis
// does not answer.
func (r *Redis) first(ctx context.Context, ks *keyspace, name string) *Entry {
	l := heldLine{ks.rule, name}
	r.mu.Lock()
	_, ours := r.held[l]
	r.mu.Unlock()
	if ours { // Redis was away, and has not seen the renewal in time
		r.renew(ctx)
		return nil
	}
	got, err := r.run(ctx, ks.rule, "take a deferred request", scripts.head, []string{ks.key("turns"), ks.line(name)}, name, r.consumer, millis(r.o.Takeover))
	if err != nil || len(got) == 0 {
		return nil
	}
	id, sid := got[0], got[1]
	r.mu.Lock()
	r.held[l] = sid
	r.mu.Unlock()
	e, _, err := r.read(ctx, ks, id, true)
	var bad *recordError
	var version *versionError
	switch {
	case errors.As(err, &version): // a gateway of that version sends it; the line waits
		r.o.Log.Warn("a deferred request is left to gateways of another version", "rule", ks.rule, "id", id, "err", err)
		e.Next = time.Now().Add(leaveFor)
		r.settle(l, func(ctx context.Context) error { return r.putBack(ctx, ks, l.name, sid, e) })
		return nil
	case errors.As(err, &bad), errors.Is(err, ErrNone): // the line continues, and the entry becomes a dead letter
		if bad == nil {
			err = errors.New("its record is gone: somebody has deleted it")
		}
		r.o.Log.Error("a deferred request cannot be read", "rule", ks.rule, "id", id, "err", err)
		e = &Entry{V: Version, ID: id, Line: Line{Rule: ks.rule}, State: Dead, Reason: err.Error(), Ended: time.Now()}
		r.endHeld(l, e, true)
		return nil
	case err != nil || e.State != Trying: // it is claimed, and will be tried again after the takeover
		r.release(l)
		return nil
	}
	return e
}

// leaveFor is after how long a gateway looks again at an entry that it leaves to others.
const leaveFor = time.Second

// recordError says that a record cannot be read. It is [ErrUnreadable].
type recordError struct{ error }

func (e *recordError) Is(target error) bool { return target == ErrUnreadable }

func (e *recordError) Unwrap() error { return e.error }

// read returns an entry with its number in the line. If try is set, it also marks it as being tried
// and reads its body. With a [*recordError], it returns what is known of the entry.
func (r *Redis) read(ctx context.Context, ks *keyspace, id string, try bool) (e *Entry, n int64, err error) {
	mark := "0"
	if try {
		mark = "1"
	}
	got, err := r.run(ctx, ks.rule, "read a deferred request", scripts.read, []string{ks.entry(id), ks.body(id)}, mark)
	switch {
	case err != nil:
		return nil, 0, err
	case len(got) == 0:
		return nil, 0, ErrNone
	}
	e, err = decode([]byte(got[0]))
	var unreadable error
	if err != nil { // the fields beside the record are known in any case
		unreadable = &recordError{fmt.Errorf("its record cannot be read: %w", err)}
		e = &Entry{ID: id, Line: Line{Rule: ks.rule}}
	}
	e.State, e.Reason = State(got[1]), got[3]
	var number [5]int64 // attempts, time until it expires and until it is due, its number, the size of the body
	for i, text := range []string{got[2], got[4], got[5], got[6], got[8]} {
		if number[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return e, 0, &recordError{fmt.Errorf("its record has the number %q", text)}
		}
	}
	now := time.Now()
	e.Attempts = int(number[0])
	e.Expires = now.Add(time.Duration(number[1]) * time.Microsecond)
	if most := now.Add(e.Keep); e.Keep > 0 && e.Expires.After(most) { // the clock of Redis was set back
		e.Expires = most
	}
	if e.Next = (time.Time{}); number[2] > 0 {
		e.Next = now.Add(min(time.Duration(number[2])*time.Microsecond, maxRetryAfter))
	}
	if unreadable != nil {
		return e, number[3], unreadable
	}
	if try {
		e.Request.Body, err = r.bodyOf(ctx, ks, id, number[4])
	}
	return e, number[3], err
}

// bodyOf reads a body in parts.
func (r *Redis) bodyOf(ctx context.Context, ks *keyspace, id string, size int64) ([]byte, error) {
	body := make([]byte, 0, size)
	for from := int64(0); from < size; from += partSize {
		got, err := r.run(ctx, ks.rule, "read a deferred request", scripts.part, []string{ks.body(id)}, strconv.FormatInt(from, 10), strconv.FormatInt(from+partSize-1, 10))
		if err != nil {
			return nil, err
		}
		body = append(body, got[0]...)
	}
	return body, nil
}

// Again implements Store.
func (r *Redis) Again(e *Entry) {
	l := heldLine{e.Line.Rule, nameOf(e.Line)}
	r.mu.Lock()
	sid, held := r.held[l]
	r.mu.Unlock()
	if !held {
		return
	}
	ks := r.keyspaceOf(e.Line.Rule)
	r.settle(l, func(ctx context.Context) error { return r.putBack(ctx, ks, l.name, sid, e) })
}

// putBack puts an entry back at the front of its line, to be due at e.Next.
func (r *Redis) putBack(ctx context.Context, ks *keyspace, name, sid string, e *Entry) error {
	wait := max(time.Until(e.Next), 0)
	if e.Next.IsZero() {
		wait = 0
	}
	_, err := r.run(ctx, ks.rule, "put a deferred request back", scripts.again, []string{ks.key("turns"), ks.line(name), ks.entry(e.ID)},
		name, r.consumer, sid, strconv.Itoa(e.Attempts), micros(wait), e.Reason)
	return err
}

// End implements Store.
func (r *Redis) End(e *Entry) {
	r.endHeld(heldLine{e.Line.Rule, nameOf(e.Line)}, e, e.State == Done)
}

// endHeld ends the first entry of a line that this process holds, now or when Redis accepts it.
func (r *Redis) endHeld(l heldLine, e *Entry, sweep bool) {
	r.mu.Lock()
	sid := r.held[l]
	r.mu.Unlock()
	r.settle(l, func(ctx context.Context) error {
		err := r.endAt(ctx, r.keyspaceOf(l.rule), l.name, e, r.consumer, sid, sweep)
		if errors.Is(err, ErrNone) || errors.Is(err, errLost) {
			return nil // it has ended before, or another gateway takes care of it
		}
		return err
	})
}

// errLost means that another gateway has taken the entry over.
var errLost = errors.New("another gateway tries it")

// end removes an entry from its line, and records its end; by is "" for an operator. With sweep, it
// deletes the body of the request as well.
func (r *Redis) end(ctx context.Context, e *Entry, by string, sweep bool) error {
	return r.endAt(ctx, r.keyspaceOf(e.Line.Rule), nameOf(e.Line), e, by, "", sweep)
}

// endAt is end in a line by its name. sid is the stream ID of the entry, by which it leaves the line
// even if its record is gone; "" if it is not known.
func (r *Redis) endAt(ctx context.Context, ks *keyspace, name string, e *Entry, by, sid string, sweep bool) error {
	record := e.ended()
	text, err := encode(&record)
	if err == nil && len(text) > maxRecord && record.Result != nil { // the record only has room for the status
		record.Result = &Result{Status: record.Result.Status, Truncated: true}
		text, err = encode(&record)
	}
	if err != nil {
		return err
	}
	delBody := "0"
	if sweep {
		delBody = "1"
	}
	got, err := r.run(ctx, ks.rule, "record the end of a deferred request", scripts.end, []string{
		ks.key("meta"), ks.key("turns"), ks.key("waiting"), ks.key(string(e.State)), ks.key("lines"), ks.line(name), ks.entry(e.ID), ks.body(e.ID),
	}, name, e.ID, by, string(e.State), strconv.Itoa(e.Attempts), e.Reason, string(text), strconv.FormatInt(record.size(), 10), delBody, strconv.FormatInt(r.o.Max, 10), sid)
	if err != nil {
		return err
	}
	switch got[0] {
	case "over":
		_ = r.trim(ctx, ks) // if this fails, the next end trims
	case "none":
		return ErrNone
	case "lost":
		return errLost
	case "busy":
		return ErrBusy
	}
	return nil
}
