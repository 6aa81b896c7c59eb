// Package desk is what callers can ask who decide for themselves what to do with the
// answer: may this pass, what would be said, reserve, settle, hold a slot. Front ends that
// speak some protocol turn its questions into these calls, and these answers into words.
//
// Nobody here sees how a request ends, and nobody can hold one: what would wait in a queue is
// refused with the wait as RetryAfter, elastic limits are hard, and a request counts as if its
// outcome did, and costs what was estimated, until the caller reports with its ticket.
//
// Start with [New].
package desk

import (
	"context"
	"errors"
	"fmt"

	"tidegate.dev/tidegate"
)

// ErrTicket: the text is not a ticket, or not one of this version.
var ErrTicket = errors.New("this is not a ticket")

// Desk answers questions. It may be used by many goroutines at once.
type Desk struct {
	gate *tidegate.Gate
	slip func(*tidegate.Request, *tidegate.Decision) string // nil means refusals have none
}

// New returns a Desk that asks gate.
func New(gate *tidegate.Gate) *Desk {
	if gate == nil {
		panic("desk: New: the gate is nil")
	}
	return &Desk{gate: gate}
}

// WithSlips returns a Desk whose refusals have the slips that f makes of them.
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

// Answer is a decision and, where something is left to do, the ticket to do it with.
type Answer struct {
	tidegate.Decision
	Ticket string // "" when nothing is left to do
	Slip   string // of a refusal; "" if there is none
}

// Word says in one word what became of the request: allowed, limited or denied.
func Word(d *tidegate.Decision) string {
	switch {
	case d.OK:
		return "allowed"
	case d.Limit != nil && d.Limit.Algorithm == tidegate.Deny && !d.Limit.Sheds():
		return "denied"
	}
	return "limited"
}

// Check decides and charges, for callers who will not come back: what counts by the outcome
// counts, estimates stay charged, a slot is held for its lease.
func (d *Desk) Check(ctx context.Context, r *tidegate.Request) tidegate.Decision {
	r.Unattended = true
	return d.gate.Decide(ctx, r)
}

// Open is Check with a ticket for callers who may come back: to settle what counts by the
// outcome or on an estimate, to renew slots and to release them. Until they do, it is charged
// as Check does, and may start a block.
func (d *Desk) Open(ctx context.Context, r *tidegate.Request) Answer {
	r.Unattended = true
	decision, ticket := d.gate.IssueSettled(ctx, r)
	return d.answer(r, decision, ticket)
}

// OpenPending is Open for callers who have said that they will report the outcome: until they
// do, the request is in flight. It holds its place, and starts no block.
func (d *Desk) OpenPending(ctx context.Context, r *tidegate.Request) Answer {
	r.Unattended = true
	decision, ticket := d.gate.Issue(ctx, r)
	return d.answer(r, decision, ticket)
}

func (d *Desk) answer(r *tidegate.Request, decision tidegate.Decision, ticket *tidegate.Ticket) Answer {
	a := Answer{Decision: decision}
	if !decision.OK && d.slip != nil {
		refusal := decision // it moves to the heap, which admissions need not pay for
		a.Slip = d.slip(r, &refusal)
	}
	if ticket != nil {
		text, err := ticket.MarshalText()
		if err != nil { // numbers, strings and bytes: this cannot fail
			panic(fmt.Sprintf("desk: writing a ticket: %v", err))
		}
		a.Ticket = string(text)
	}
	return a
}

// Reserve is OpenPending of a request whose cost is an estimate, in every rule that charges
// what the request says.
func (d *Desk) Reserve(ctx context.Context, r *tidegate.Request) Answer {
	r.Estimate = true
	return d.OpenPending(ctx, r)
}

// Peek tells what Check would, and charges nothing.
func (d *Desk) Peek(ctx context.Context, r *tidegate.Request) tidegate.Decision {
	r.Unattended = true
	return d.gate.Peek(ctx, r)
}

// Settle tells how a request ended: its status, its true cost, or both. It happens once:
// afterwards it is tidegate.ErrSettled. It is tidegate.ErrElsewhere if another process
// has the counters, and ErrTicket if the text is none.
func (d *Desk) Settle(ctx context.Context, ticket string, o tidegate.Outcome) error {
	t, err := parse(ticket)
	if err != nil {
		return err
	}
	return d.gate.Settle(ctx, t, o)
}

// Renew prolongs the leases of a ticket's slots. It is tidegate.ErrLeaseLost if one has
// run out, or there are none.
func (d *Desk) Renew(ctx context.Context, ticket string) error {
	t, err := parse(ticket)
	if err != nil {
		return err
	}
	return d.gate.Renew(ctx, t)
}

// Release gives a ticket's slots back, and leaves the rest as it is. It may be repeated.
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
