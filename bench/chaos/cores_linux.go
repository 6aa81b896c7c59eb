package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// watchCores notes by how much a sleep of a millisecond was too long on each core. On a machine that
// others share, one core may stand still, with the servers on it, while the other goes on.
func (p *probe) watchCores(ctx context.Context) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return // the machine is watched as a whole
	}
	for core, left := 0, all.Count(); left > 0; core++ {
		if all.IsSet(core) {
			left--
			go p.watchCore(ctx, core)
		}
	}
}

func (p *probe) watchCore(ctx context.Context, core int) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	var one unix.CPUSet
	one.Set(core)
	if unix.SchedSetaffinity(0, &one) != nil {
		return
	}
	const nap = time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(nap)}, nil) // by this thread, which the runtime does not move
		p.overslept(time.Since(began) - nap)
	}
}
