package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// player carries out the steps of a script on a store.
type player struct {
	store    tidegate.Store
	clock    *clock
	receipts map[string]tidegate.Receipt
}

// able reports whether the store has what a command asks of it.
func (p *player) able(command string) bool {
	ok := true
	switch command {
	case "renew":
		_, ok = renewer(p.store)
	case "reserve", "settle":
		_, ok = reserver(p.store)
	case "reset":
		_, ok = resetter(p.store)
	}
	return ok
}

func (p *player) play(s traceStep) error {
	p.clock.set(s.at)
	for i := range s.times {
		if err := p.once(s, i == s.times-1); err != nil {
			if s.times > 1 {
				return fmt.Errorf("time %d of %d: %w", i+1, s.times, err)
			}
			return err
		}
	}
	return nil
}

func (p *player) once(s traceStep, last bool) error {
	ctx := context.Background()
	taken, known := p.receipts[s.of]
	if s.of != "" && !known {
		return fmt.Errorf("nothing was marked as=%s", s.of)
	}
	switch s.command {
	case "take", "acquire", "peek":
		d, err := p.store.Take(ctx, s.checks, s.copies)
		return p.decided(s, d, err, last)
	case "reserve":
		able, _ := reserver(p.store)
		d, err := able.Reserve(ctx, s.checks, time.Hour)
		return p.decided(s, d, err, last)
	case "settle":
		able, _ := reserver(p.store)
		err := able.Settle(ctx, taken, s.checks[0].Cost)
		return s.want.compareError(err, "settled", tidegate.ErrSettled)
	case "renew":
		able, _ := renewer(p.store)
		err := able.Renew(ctx, taken, s.checks)
		return s.want.compareError(err, "lost", tidegate.ErrLeaseLost)
	case "reset":
		able, _ := resetter(p.store)
		return able.Reset(ctx, s.checks)
	}
	return p.store.Adjust(ctx, taken, s.checks)
}

func (p *player) decided(s traceStep, d tidegate.Decision, err error, last bool) error {
	if err != nil {
		return fmt.Errorf("the store could not answer: %w", err)
	}
	if s.as != "" {
		p.receipts[s.as] = d.Receipt
		if len(s.checks) == 1 && isBucket(s.checks[0].Limit) {
			p.receipts[s.as] = after(d.Receipt, turnAfter(d.Wait)) // its turn
		}
	}
	return s.want.compare(d, last)
}

// compareError is for commands that answer with an error or none.
func (e *expectation) compareError(err error, word string, sentinel error) error {
	switch {
	case e.verdict == "ok" && err == nil:
		return nil
	case e.verdict == word && errors.Is(err, sentinel):
		return nil
	case err == nil:
		return fmt.Errorf("expected %s, got: ok", e.verdict)
	}
	return fmt.Errorf("expected %s, got: %w", e.verdict, err)
}
