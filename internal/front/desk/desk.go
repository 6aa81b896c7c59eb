// Package desk is for callers that act on decisions themselves: may this pass, what would the
// decision be, reserve, settle, hold a slot. Front ends for a protocol translate its requests into
// these calls, and the results into its answers.
//
// A desk does not see how a request ends, and cannot delay one: what would wait in a queue is
// refused with the wait as RetryAfter, and elastic limits stay at their nominal size. Until the
// caller reports with its ticket, a request is charged as if its outcome were one that counts, and
// costs what was estimated.
//
// Start with [New].
package desk

import (
	"context"
	"errors"
	"fmt"

	"tidegate.dev/tidegate"
)

// ErrTicket: the text is not a ticket, or a ticket of another version.
var ErrTicket = errors.New("this is not a ticket")

// Desk answers questions. It may be used by many goroutines at once.
type Desk struct {
	gate *tidegate.Gate
	slip func(*tidegate.Request, *tidegate.Decision) string // nil means that refusals have no slips
}

// New returns a Desk that asks gate.
func New(gate *tidegate.Gate) *Desk {
	if gate == nil {
		panic("desk: New: the gate is nil")
	}
	return &Desk{gate: gate}
}

// WithSlips returns a Desk whose refusals have the slips that f returns.
func (d *Desk) WithSlips(f func(*tidegate.Request, *tidegate.Decision) string) *Desk {
	return &Desk{d.gate, f}
}

// Slip returns the slip of a refusal by Check; "" if there is none.
func (d *Desk) Slip(r *tidegate.Request, decision *tidegate.Decision) string {
	if d.slip == nil || decision.OK {
		return ""
	}
	return d.slip(r, decision)
}

// Answer is a decision and, if something is left to do, the ticket for it.
type Answer struct {
	tidegate.Decision
	Ticket string // "" when nothing is left to do
	Slip   string // of a refusal; "" if there is none
}

// Word returns the result in one word: allowed, limited or denied.
func Word(d *tidegate.Decision) string {
	switch {
	case d.OK:
		return "allowed"
	case d.Limit != nil && d.Limit.Algorithm == tidegate.Deny && !d.Limit.Sheds():
		return "denied"
	}
	return "limited"
}

// Check decides and charges, for callers that will not report back: charges that depend on the
// outcome stay, estimates stay charged, and a slot is held until its lease ends.
func (d *Desk) Check(ctx context.Context, r *tidegate.Request) tidegate.Decision {
	r.Unattended = true
	return d.gate.Decide(ctx, r)
}

// Open is Check with a ticket for callers that may report back: to settle what counts by outcome or
// was estimated, to renew slots and to release them. Until then it is charged like Check, and may
// start a block.
func (d *Desk) Open(ctx context.Context, r *tidegate.Request) Answer {
	r.Unattended = true
	decision, ticket := d.gate.IssueSettled(ctx, r)
	return d.answer(r, decision, ticket)
}

// OpenPending is Open for callers that have promised to report the outcome: until they do, the
// request is in flight. It holds its place, and starts no block.
func (d *Desk) OpenPending(ctx context.Context, r *tidegate.Request) Answer {
	r.Unattended = true
	decision, ticket := d.gate.Issue(ctx, r)
	return d.answer(r, decision, ticket)
}

func (d *Desk) answer(r *tidegate.Request, decision tidegate.Decision, ticket *tidegate.Ticket) Answer {
	a := Answer{Decision: decision}
	if !decision.OK && d.slip != nil {
		refusal := decision // this copy moves to the heap; admissions do not need it
		a.Slip = d.slip(r, &refusal)
	}
	if ticket != nil {
		text, err := ticket.MarshalText()
		if err != nil { // cannot happen: numbers, strings and bytes
			panic(fmt.Sprintf("desk: writing a ticket: %v", err))
		}
		a.Ticket = string(text)
	}
	return a
}

// Reserve is OpenPending for a request whose cost is an estimate, in every rule that charges the
// request's own cost.
func (d *Desk) Reserve(ctx context.Context, r *tidegate.Request) Answer {
	r.Estimate = true
	return d.OpenPending(ctx, r)
}

// Peek returns the decision that Check would return, and charges nothing.
func (d *Desk) Peek(ctx context.Context, r *tidegate.Request) tidegate.Decision {
	r.Unattended = true
	return d.gate.Peek(ctx, r)
}

// Settle reports how a request ended: its status, its true cost, or both. A second call returns
// tidegate.ErrSettled. The error is tidegate.ErrElsewhere if another process has the counters, and
// ErrTicket if the text is not a ticket.
func (d *Desk) Settle(ctx context.Context, ticket string, o tidegate.Outcome) error {
	t, err := parse(ticket)
	if err != nil {
		return err
	}
	return d.gate.Settle(ctx, t, o)
}

// Renew extends the leases of a ticket's slots. The error is tidegate.ErrLeaseLost if one has
// expired, or there are none.
func (d *Desk) Renew(ctx context.Context, ticket string) error {
	t, err := parse(ticket)
	if err != nil {
		return err
	}
	return d.gate.Renew(ctx, t)
}

// Release releases a ticket's slots, and leaves the rest as it is. It may be repeated.
func (d *Desk) Release(ctx context.Context, ticket string) error {
	t, err := parse(ticket)
	if err != nil {
		return err
	}
	return d.gate.Release(ctx, t)
}

func parse(text string) (*tidegate.Ticket, error) {
	t := new(tidegate.Ticket)
	if t.UnmarshalText([]byte(text)) != nil {
		return nil, ErrTicket
	}
	return t, nil
}
