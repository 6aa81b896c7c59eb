package process

import (
	"context"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
)

const (
	// calm is the share of the cores that other machines may take while something is measured.
	calm = 0.02
	// repeats is how often a part of a race is run again.
	repeats = 5
	// longestWait is how long a race waits for other machines to let go of the cores.
	longestWait = time.Minute
	glance      = time.Second
)

// Undisturbed runs f, a part of a race in which everybody has a turn, and runs it again if other
// machines on the same cores took more than a little of them meanwhile: that hits one contestant
// and not the other. forget drops what f has noted.
func Undisturbed(ctx context.Context, what string, f func() error, forget func()) error {
	return undisturbed(ctx, what, f, forget, stolenTime, glance)
}

func undisturbed(ctx context.Context, what string, f func() error, forget func(), look func() (stolen, all int64), glance time.Duration) error {
	for range repeats {
		taken := since(look)
		if err := f(); err != nil {
			return err
		}
		share := taken()
		if share <= calm {
			return nil
		}
		rig.Progress("%s: other machines took %.0f %% of the cores meanwhile, so it is run again", what, 100*share)
		forget()
		if err := awaitCalm(ctx, look, glance); err != nil {
			return err
		}
	}
	rig.Progress("%s: other machines do not let go of the cores: the figures are rough", what)
	return f()
}

// awaitCalm waits until other machines take little, or for longestWait.
func awaitCalm(ctx context.Context, look func() (stolen, all int64), glance time.Duration) error {
	for range longestWait / glance {
		taken := since(look)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(glance):
		}
		if taken() <= calm {
			break
		}
	}
	return nil
}

// since returns the share of the cores that other machines took from now until it is called.
func since(look func() (stolen, all int64)) func() float64 {
	stolen, all := look()
	return func() float64 {
		stolenNow, allNow := look()
		return float64(stolenNow-stolen) / float64(max(1, allNow-all))
	}
}

// stolenTime returns what other machines have taken of the cores, none where that is not known.
func stolenTime() (stolen, all int64) {
	c, err := coreTime()
	if err != nil {
		return 0, 0
	}
	return c.stolen, c.all
}
