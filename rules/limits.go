package rules

import (
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// held is one limit that requests are held to.
type held struct {
	limit *tidegate.Limit // decides
	// nominal marks what is above it; limit is then the ceiling.
	nominal *tidegate.Limit
	// strict is nominal as a limit that decides: if it is elastic and its signal leaves no room, or
	// if the time above it is limited.
	strict *tidegate.Limit
	// timed: checks use strict in place of nominal, and the Gate lets requests pass above it for a
	// while.
	timed bool
	// maxWait is how far ahead of time a bucket may be charged.
	maxWait time.Duration
	// slot: a concurrency limit. A request takes one slot, whatever it costs.
	slot bool
	// tries: it only tries, and never decides.
	tries bool
}

// item is a limit whose numbers are known, or depend on who is asking.
type item struct {
	held
	vary *vary // instead of held
}

// limiter makes the limits of one rule. While rules are compiled, its maps let it make each limit
// once.
type limiter struct {
	rule   *rule
	answer tidegate.Answer
	counts []tidegate.StatusRange
	blocks map[string]*tidegate.Limit // by scope
	limits map[tidegate.Spec]*tidegate.Limit
	terms  map[role]*tidegate.Terms
}

// role is what distinguishes the terms of a rule's limits.
type role struct {
	is      tidegate.Role
	elastic bool
	maxOver time.Duration
	nominal *tidegate.Limit
	block   *tidegate.Limit
	settle  string
	status  int
	slot    bool
	queue   tidegate.Queue // the zero value: nothing waits
	shared  tidegate.Consistency
}

// limiter returns a limiter without maps, for limits that are made while requests are matched.
func (r *rule) limiter() *limiter {
	l := &limiter{rule: r, answer: r.policies.answerDefaults.answer(r.respond, r.deny)}
	if r.count != nil {
		l.counts = r.count.Status
	}
	return l
}

// limiterOf returns the limiter for compiling r. It reuses the maps of the previous rule.
func (c *compiler) limiterOf(r *rule) *limiter {
	const most = 64 // large maps take long to clear, and stay large
	if c.limiter == nil || len(c.limiter.limits) > most {
		c.limiter = &limiter{
			blocks: make(map[string]*tidegate.Limit),
			limits: make(map[tidegate.Spec]*tidegate.Limit),
			terms:  make(map[role]*tidegate.Terms),
		}
	}
	l := c.limiter
	clear(l.blocks)
	clear(l.limits)
	clear(l.terms)
	fresh := r.limiter()
	l.rule, l.answer, l.counts = r, fresh.answer, fresh.counts
	return l
}

var failModes = map[rulefile.FailMode]tidegate.FailMode{
	rulefile.FailLocal: tidegate.FailLocal,
	rulefile.FailAllow: tidegate.FailOpen,
	rulefile.FailDeny:  tidegate.FailClosed,
}

var onPartitions = map[string]tidegate.OnPartition{
	"continue": tidegate.PartitionContinue,
	"share":    tidegate.PartitionShare,
}

// limit completes spec with what the rule says about all its limits, and makes the limit.
func (l *limiter) limit(spec tidegate.Spec, scope string, as role) (*tidegate.Limit, error) {
	spec.Name, spec.Scope, spec.OnFull = l.rule.name, scope, l.rule.policies.onFull
	if as.is != tidegate.Blocks { // a block must hold at every instance
		as.shared, _ = l.rule.written().Sharing(spec.Algorithm)
	}
	spec.Terms = l.termsOf(as)
	if made := l.limits[spec]; made != nil {
		return made, nil
	}
	made, err := tidegate.NewLimit(spec)
	if err == nil && l.limits != nil {
		l.limits[spec] = made
	}
	return made, err
}

func (l *limiter) termsOf(as role) *tidegate.Terms {
	if t := l.terms[as]; t != nil {
		return t
	}
	t := &tidegate.Terms{
		Rule: l.rule.name,
		Role: as.is, Elastic: as.elastic, MaxOver: as.maxOver,
		Answer: l.answer,
		AtEnd:  tidegate.AtEnd{Block: as.block, Settle: as.settle},
		Handling: tidegate.Handling{
			OnStoreFailure: l.rule.policies.onStoreFailure, Consistency: as.shared,
			NoDenyCache: l.rule.policies.layers.NoDenyCache, NoCoalesce: l.rule.policies.layers.NoCoalesce,
		},
	}
	if as.shared == tidegate.Eventual {
		t.Handling.OnPartition = onPartitions[l.rule.policies.onPartition]
	}
	t.Answer.Nominal, t.Handling.Final = as.nominal, as.is == tidegate.Blocks
	if !as.slot && as.is != tidegate.Blocks {
		t.AtEnd.Counts = l.counts
	}
	if as.queue.Places > 0 && as.is == tidegate.Decides {
		t.Handling.Queue = &as.queue
	}
	if as.is == tidegate.Decides {
		t.Handling.Defer = l.rule.kept()
	}
	if as.status != 0 {
		t.Answer.Status = as.status
	}
	if l.terms != nil {
		l.terms[as] = t
	}
	return t
}

// block returns the limit that blocks callers after a refusal, nil if the rule has none.
func (l *limiter) block(scope string) (*tidegate.Limit, error) {
	if l.rule.block == 0 || l.blocks[scope] != nil {
		return l.blocks[scope], nil
	}
	made, err := l.blockTelling(scope, nil)
	l.blocks[scope] = made
	return made, err
}

// blockTelling returns block with the same counter, whose refusals describe the nominal limit to
// clients.
func (l *limiter) blockTelling(scope string, nominal *tidegate.Limit) (*tidegate.Limit, error) {
	spec := tidegate.Spec{Events: 1, Period: l.rule.block, Algorithm: tidegate.SlidingLog}
	return l.limit(spec, scope+"#block", role{is: tidegate.Blocks, nominal: nominal})
}

// held makes the limits that spec stands for; over is nil for a hard limit.
func (l *limiter) held(spec tidegate.Spec, scope string, as role, over *rulefile.Over) (held, error) {
	h := held{slot: as.slot, tries: as.is == tidegate.Tries}
	var err error
	if over != nil && (over.Soft > 0 || over.Elastic != nil) {
		if err = l.under(&h, spec, scope, as, over); err != nil {
			return h, err
		}
		as.nominal = h.nominal
		// From a spec that was completed: a burst that was not said grows as well.
		spec = over.Ceiling(h.nominal.Spec)
	}
	h.limit, err = l.limit(spec, scope, as)
	if err == nil && !h.tries {
		h.maxWait = bookAhead(h.limit, as.queue)
	}
	return h, err
}

// bookAhead returns how far ahead waiting requests may charge a bucket. A leaky bucket has its
// places in its capacity; for a token bucket, places are as much time as their events take.
func bookAhead(l *tidegate.Limit, q tidegate.Queue) time.Duration {
	switch l.Algorithm {
	case tidegate.LeakyBucket:
		return q.MaxWait
	case tidegate.TokenBucket:
		places := float64(q.Places) * float64(l.Period) / float64(l.Events)
		return min(q.MaxWait, time.Duration(min(places, math.MaxInt64/2)))
	}
	return 0
}

// nominalScope is the suffix of the scope of a nominal limit below a ceiling.
const nominalScope = "#nominal"

// isNominal reports whether l is a nominal limit, whether it marks or decides for a while.
func isNominal(l *tidegate.Limit) bool { return strings.HasSuffix(l.Scope, nominalScope) }

// under makes the nominal limit below a ceiling, and sets nominal, strict and timed of h.
func (l *limiter) under(h *held, spec tidegate.Spec, scope string, as role, over *rulefile.Over) (err error) {
	scope += nominalScope
	// A limit that never decides does not give way either.
	h.timed = over.MaxTime > 0 && as.is == tidegate.Decides
	if over.Elastic != nil || h.timed {
		strict := as
		strict.maxOver = over.MaxTime
		if h.strict, err = l.limit(spec, scope, strict); err != nil {
			return err
		}
	}
	if as.is == tidegate.Decides {
		as.is, as.elastic = tidegate.Marks, over.Elastic != nil
	}
	h.nominal, err = l.limit(spec, scope, as)
	return err
}

// answer returns how refusals by a rule are answered; own is what the rule itself says. The status
// that the file sets for all rules is for limits, not for access rules: a denied caller is not told
// to come back.
func (h *answerDefaults) answer(own *rulefile.Respond, deny bool) tidegate.Answer {
	a := tidegate.Answer{Dialects: h.headers.Dialects, Reset: h.headers.Reset, RetryJitter: h.headers.RetryJitter}
	respond := own
	if respond == nil {
		respond = h.respond
	}
	if respond == nil {
		return a
	}
	a.Message, a.Body, a.ContentType = respond.Message, respond.Body, respond.Type
	if own != nil || !deny {
		a.Status = respond.Status
	}
	return a
}
