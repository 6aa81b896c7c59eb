package pressure

import (
	"io/fs"
	"strconv"
	"strings"
	"time"
)

const memoryEvery = time.Second // a new look at most

// memoryUse is how full memory is: the largest of the shares that are known, that of the machine and of the
// cgroups that bound this process. Caches that the kernel would drop do not count.
type memoryUse struct {
	root fs.FS // where proc and sys are
	measured
}

// share returns the largest share. It is unknown if nothing can be read.
func (m *memoryUse) share(now time.Duration) (float64, bool) {
	r := m.read(now, memoryEvery, func(*reading) reading {
		var r reading
		add := func(share float64, known bool) {
			if known {
				r.value, r.known = max(r.value, min(max(share, 0), 1)), true
			}
		}
		add(machineMemory(m.root))
		for _, dir := range groupFolders(m.root, "memory") {
			add(groupMemory(m.root, dir))
		}
		return r
	})
	return r.value, r.known
}

// machineMemory reads /proc/meminfo.
func machineMemory(root fs.FS) (share float64, known bool) {
	info := fields(readText(root, "proc", "meminfo"))
	total, available := info["MemTotal:"], info["MemAvailable:"]
	if total <= 0 || available <= 0 {
		return 0, false
	}
	return 1 - available/total, true
}

// groupMemory reads what a cgroup uses of its bound, by the files of version 2 or of version 1, where a
// group without a bound has one of almost 2^63.
func groupMemory(root fs.FS, dir string) (share float64, known bool) {
	const unbounded = 1 << 60
	for _, names := range [...][3]string{
		{"memory.current", "memory.max", "inactive_file"},
		{"memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file"},
	} {
		used, err1 := strconv.ParseFloat(readText(root, dir, names[0]), 64)
		most, err2 := strconv.ParseFloat(readText(root, dir, names[1]), 64)
		if err1 != nil || err2 != nil || most <= 0 || most >= unbounded {
			continue // memory.max is "max" where there is no bound
		}
		cache := fields(readText(root, dir, "memory.stat"))[names[2]]
		return (used - cache) / most, true
	}
	return 0, false
}

// fields reads lines of a name and a number.
func fields(text string) map[string]float64 {
	all := make(map[string]float64)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		if n, err := strconv.ParseFloat(words[1], 64); err == nil {
			all[words[0]] = n
		}
	}
	return all
}
