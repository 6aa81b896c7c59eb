package process

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// warmUp is the longest that an entrant warms up before the first round.
const warmUp = time.Second

// TakeTurns lets entrants take turns in so many rounds, after a round 0 of short heats in which they warm up.
// Every other round goes backwards, so that nobody always comes after the same one. run is one heat. A
// round that was disturbed is repeated; keep is told before that how many of the rounds count.
func TakeTurns[E any](ctx context.Context, entrants []E, rounds int, heat time.Duration, run func(e E, round int, heat time.Duration) error, keep func(rounds int)) error {
	order := slices.Clone(entrants)
	for round := range rounds + 1 {
		d := heat
		if round == 0 {
			d = min(heat, warmUp)
		}
		once := func() error {
			for _, e := range order {
				if err := run(e, round, d); err != nil {
					return err
				}
			}
			return nil
		}
		if err := Undisturbed(ctx, fmt.Sprintf("round %d", round), once, func() { keep(max(0, round-1)) }); err != nil {
			return err
		}
		slices.Reverse(order)
	}
	return nil
}
