//go:build !linux

package process

import "time"

var start = time.Now()

// CPUTime returns the wall clock where there is no better one.
func CPUTime() time.Duration { return time.Since(start) }
