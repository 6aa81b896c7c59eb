package pressure

import (
	"io/fs"
	"runtime"
	"time"
)

const (
	cpuEvery = time.Second     // a new look at most
	cpuLeast = time.Second / 5 // between two looks that can be compared
	cpuOver  = 3 * time.Second // what the average is over, about
)

// cpu is how busy the processors are: the largest of the shares that are known,
// that of the machine, of the cgroups that bound this process, and of the process
// itself. Any of them at its end is what requests wait for.
type cpu struct {
	root    fs.FS // where proc and sys are
	process func() (time.Duration, bool)
	last    cpuTimes // written while measured
	measured
}

// cpuTimes are the counters at an instant.
type cpuTimes struct {
	at      time.Duration
	machine *machineTime // nil means not known
	groups  []groupTime  // those with a bound
	process time.Duration
	cores   int // that the process may use; 0 means its time is not known
}

// share returns the largest share. It is unknown if nothing can be read, and for a moment at first.
func (c *cpu) share(now time.Duration) (float64, bool) {
	r := c.read(now, cpuEvery, func(last *reading) reading {
		if now-c.last.at < cpuLeast {
			return reading{}
		}
		times := c.look(now)
		value, known := busy(&c.last, &times)
		if known && last != nil && last.known {
			value = smooth(last.value, value, now-last.at, cpuOver)
		}
		c.last = times
		return reading{value: value, known: known}
	})
	return r.value, r.known
}

func (c *cpu) look(now time.Duration) cpuTimes {
	t := cpuTimes{at: now, machine: readMachine(c.root), groups: readGroups(c.root)}
	if spent, ok := c.process(); ok {
		t.process, t.cores = spent, runtime.GOMAXPROCS(0)
	}
	return t
}

// busy returns the largest share of processor time, of the machine, a cgroup or this process, that was
// used between two readings.
func busy(before, after *cpuTimes) (share float64, known bool) {
	dt := (after.at - before.at).Seconds()
	if dt <= 0 {
		return 0, false
	}
	add := func(s float64) {
		share, known = max(share, min(max(s, 0), 1)), true
	}
	if a, b := before.machine, after.machine; a != nil && b != nil && b.total > a.total {
		add(float64(b.busy-a.busy) / float64(b.total-a.total))
	}
	for _, b := range after.groups {
		for _, a := range before.groups {
			if a.name == b.name {
				add((b.used - a.used).Seconds() / (dt * b.cores))
			}
		}
	}
	if before.cores > 0 && after.cores > 0 {
		add((after.process - before.process).Seconds() / (dt * float64(after.cores)))
	}
	return share, known
}
