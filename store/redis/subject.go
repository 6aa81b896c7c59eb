package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate"
)

// subject is the checks of one request whose counters are in the same slot, and the answer to
// them.
type subject struct {
	tag     string
	former  *endpoint // of a copy for the former owner: that owner; see former.go
	of      *subject  // of such a copy: the subject for the present owner
	pending []*pendingCheck
	width   width
	asked   int64 // how many copies it was asked for
	grant   grant
	err     error
}

// width says how many callers share a subject.
type width struct {
	parts    int   // how many parts of the key tell callers apart; 0 if everyone shares it
	capacity int64 // of the largest of its limits
}

// compareWidth orders subjects from narrow to wide: one whose key has more parts is shared
// by fewer callers. Rates do not matter: 1000 an hour for everyone is wider than 5 a second
// for one caller.
func compareWidth(a, b *subject) int {
	return cmp.Or(cmp.Compare(b.width.parts, a.width.parts), cmp.Compare(a.width.capacity, b.width.capacity))
}

// split groups checks by subject, the widest last.
func split(pending []*pendingCheck) []*subject {
	var all []*subject
	byTag := map[string]*subject{}
	for _, p := range pending {
		tag := tagOf(p.key)
		sub := byTag[tag]
		if sub == nil {
			sub = &subject{tag: tag, width: width{parts: partsOf(p.lim.limit.Scope, p.check.Key)}}
			byTag[tag] = sub
			all = append(all, sub)
		}
		sub.pending = append(sub.pending, p)
		sub.width.capacity = max(sub.width.capacity, p.lim.capacity)
	}
	slices.SortStableFunc(all, compareWidth)
	return all
}

// partsOf counts the parts of a key that tell callers apart. A route, a method or a host does not: all
// its callers share it.
func partsOf(scope, key string) (n int) {
	if key == "" {
		return 0
	}
	for name := range strings.SplitSeq(scope, ",") {
		switch name {
		case "everyone", "route", "method", "host":
		default:
			n++
		}
	}
	return n
}

// decideApart decides about several subjects of a cluster or of shards, one after the other
// from the narrowest to the widest, so that a caller that its own limits refuse never uses up a wide
// one. What was granted and is not used is given back, unless an answer was lost: then
// nobody knows whether there was a charge. Such a request costs the subjects at most what
// it asked for, and no limit is ever exceeded.
func (s *Store) decideApart(ctx context.Context, pending []*pendingCheck, subjects []*subject, o takeParams) (tidegate.Decision, grant, error) {
	copies, asked, err := o.copies, 0, error(nil)
	for copies > 0 && asked < len(subjects) && err == nil {
		sub, next := subjects[asked], takeParams{copies: copies, handle: o.handle}
		if asked == len(subjects)-1 {
			o.rec.note(subjects[:asked])
			next.rec = o.rec
		}
		asked++
		sub.asked = copies
		sub.grant, sub.err = s.askSubject(ctx, sub, next)
		if sub.former != nil && sub.err != nil {
			continue // its present owner decides alone
		}
		copies, err = sub.grant.copies, sub.err
		if sub.former != nil {
			pending = append(pending, sub.pending...)
		}
	}
	if err == nil && copies == 0 {
		err = s.askRefused(ctx, subjects[asked:], o.copies)
	}
	if err == nil {
		s.countRefused(ctx, subjects[:asked], o.copies)
	}
	s.returnUnused(ctx, subjects[:asked], copies)
	if err != nil {
		return tidegate.Decision{}, grant{}, err
	}
	g := grant{copies: copies, at: subjects[len(subjects)-1].grant.at, handle: o.handle}
	d := decision(pending, g, o.copies)
	if copies > 0 {
		d.Receipt.Apart = apart(subjects)
	}
	return d, g, nil
}

// apart returns when each of the subjects was charged, by the clocks of their servers.
func apart(subjects []*subject) *tidegate.Apart {
	at := make(map[string]int64, len(subjects)+1)
	for _, sub := range subjects {
		if sub.former != nil {
			if sub.err == nil {
				at[formerTag(sub.tag)] = sub.grant.at
			}
			continue
		}
		at[sub.tag], at[apartFrom] = sub.grant.at, sub.grant.at // in the end that of the last
	}
	return &tidegate.Apart{At: at}
}

// chargedAt returns when the counter of a tag, the first of several that the receipt knows, was
// charged in the decision of receipt r, by the clock of its own server. If r.At was moved
// since, so is the result.
func chargedAt(r tidegate.Receipt, tags ...string) int64 {
	if r.Apart != nil {
		for _, tag := range tags {
			if at, ok := r.Apart.At[tag]; ok {
				return at + r.At - r.Apart.At[apartFrom]
			}
		}
	}
	return r.At
}

// apartFrom is the key in Apart.At under which the original Receipt.At is kept, so that
// chargedAt can tell by how much it was moved. No tag is empty.
const apartFrom = ""

// countRefused tells subjects that count rejected requests of the copies that they were not asked for, because
// another one had refused them. If it fails, these are not counted: the request was answered.
func (s *Store) countRefused(ctx context.Context, subjects []*subject, copies int64) {
	var all sync.WaitGroup
	for _, sub := range subjects {
		if sub.former != nil || sub.asked >= copies || !slices.ContainsFunc(sub.pending, (*pendingCheck).countsRejected) {
			continue
		}
		again := make([]*pendingCheck, len(sub.pending)) // their answers are those for the copies that were asked for
		for i, p := range sub.pending {
			one := *p
			again[i] = &one
		}
		all.Go(func() { _, _ = s.ask(ctx, again, takeParams{copies: copies - sub.asked, refused: true}) })
	}
	all.Wait()
}

func (p *pendingCheck) countsRejected() bool {
	return p.lim.kind == logs && p.lim.limit.CountRejected && !p.advisory
}

// askRefused asks the owners of the remaining subjects, at the same time, about a request that
// was already refused: the decision also reports their limits, which may count rejected
// requests.
func (s *Store) askRefused(ctx context.Context, subjects []*subject, copies int64) error {
	var all sync.WaitGroup
	for _, sub := range subjects {
		if sub.former == nil {
			all.Go(func() { sub.grant, sub.err = s.ask(ctx, sub.pending, takeParams{copies: copies, refused: true}) })
		}
	}
	all.Wait()
	for _, sub := range subjects {
		if sub.err != nil {
			return sub.err
		}
	}
	return nil
}

const (
	// returnTimeout bounds each try to return what was granted, after the request was answered.
	returnTimeout = time.Second
	// returnFor is for how long returns are tried again that a server did not run: about as long
	// as a slot with many keys takes to move to another master.
	returnFor = 10 * time.Second
	// maxReturning bounds how many returns are tried again at the same time.
	maxReturning = 1024
	// returnPause is the pause before the second try. It doubles each time, up to longestPause.
	returnPause  = 10 * time.Millisecond
	longestPause = time.Second
)

// returnUnused returns what subjects granted beyond the copies that are kept. It waits for
// the first try, but no longer than ctx.
func (s *Store) returnUnused(ctx context.Context, subjects []*subject, kept int64) {
	var changes []change
	for _, sub := range subjects {
		if sub.err != nil || sub.grant.copies == 0 {
			continue
		}
		for _, p := range sub.pending {
			back := p.surplus(kept)
			for i := range back {
				back[i].former = sub.former != nil
			}
			changes = append(changes, back...)
		}
	}
	if len(changes) == 0 {
		return
	}
	var tried sync.WaitGroup
	for _, some := range byPlace(changes) {
		tried.Add(1)
		go s.returnTo(context.WithoutCancel(ctx), some, tried.Done)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tried.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// returnTo makes changes in one place. If the server did not run the script, as when the slot has
// begun to move to another master, it tries again. After any other failure it is not known
// whether they were made, and what may not have been returned stays charged. tried is called
// after the first try.
func (s *Store) returnTo(ctx context.Context, changes []change, tried func()) {
	again := s.tryReturn(ctx, changes)
	tried()
	if !again {
		return
	}
	defer s.returning.Add(-1)
	if s.returning.Add(1) > maxReturning {
		return
	}
	for pause, until := returnPause, time.Now().Add(returnFor); again && time.Now().Before(until); pause = min(2*pause, longestPause) {
		time.Sleep(pause)
		again = s.tryReturn(ctx, changes)
	}
}

// tryReturn reports whether changes are to be tried again.
func (s *Store) tryReturn(ctx context.Context, changes []change) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	_, _, err := s.apply(ctx, changes, recordAction{})
	var refused *rueidis.RedisError
	if !errors.As(err, &refused) {
		return false
	}
	not, never := notRun(refused.Error())
	return not && !never
}

// surplus returns the changes that give back what p got beyond the copies that are kept,
// and updates p.answer to what is left after them.
func (p *pendingCheck) surplus(kept int64) []change {
	extra := p.answer.got - kept
	if extra <= 0 || p.cost == 0 || p.countsRejected() { // such a log counts what others refuse
		return nil
	}
	back := change{lim: p.lim, key: p.key, act: giveBack, n: extra * p.cost, at: p.at}
	p.answer.left += back.n
	switch law := &p.lim.bucket; p.lim.kind {
	case buckets:
		p.answer.reset -= back.n * law.Em
		p.answer.left = max(0, (law.Tau-p.answer.reset)/law.Em-p.floor)
		back.at += p.answer.delay // a turn that was booked is returned at its own instant
		if law.Leaky {
			back.at += kept * p.cost * law.Em
			ahead := min(p.wait, p.lim.longest) - p.answer.reset
			p.answer.left = min(p.answer.left, max(0, ahead/law.Em+1))
			if ahead < 0 {
				p.answer.left = 0
			}
		}
	case leases: // each copy has its own handle
		changes := make([]change, 0, extra)
		for i := kept; i < p.answer.got; i++ {
			back.n, back.handle = p.cost, p.handle.Copy(i)
			changes = append(changes, back)
		}
		return changes
	}
	return []change{back}
}
