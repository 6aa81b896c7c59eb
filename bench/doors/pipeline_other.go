//go:build !linux

package main

import (
	"context"
	"errors"
	"time"
)

// connections of a heat over RESP, as redis-benchmark has by default.
const connections = 50

// respTally is what the load generator counted in one heat.
type respTally struct {
	replies, wrong int64
	took, p99      time.Duration
}

func (t respTally) rate() float64 { return float64(t.replies) / t.took.Seconds() }

func (c respCommand) drive(context.Context, string, int, time.Duration) (respTally, error) {
	return respTally{}, errors.New("the load generator needs Linux")
}
