package pressure

import (
	"errors"
	"math"
	"time"
)

// LoadLasts is how long a pushed load is valid. Push it at least twice a minute; without it, elastic
// limits are hard.
const LoadLasts = time.Minute

// ErrLoad is returned by Push for a value that is not a valid load.
var ErrLoad = errors.New("a load is a number from 0 upwards")

type pushed struct {
	value float64
	until time.Duration
}

// Push sets the signal `load`, for [LoadLasts].
func (s *Signals) Push(load float64) error {
	if !(load >= 0) || math.IsInf(load, 0) {
		return ErrLoad
	}
	s.load.Store(&pushed{load, s.now() + LoadLasts})
	return nil
}

func (s *Signals) pushed(now time.Duration) (float64, bool) {
	p := s.load.Load()
	if p == nil || now >= p.until {
		return 0, false
	}
	return p.value, true
}
