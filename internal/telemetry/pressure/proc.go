package pressure

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// machineTime is the first line of /proc/stat, in ticks of the kernel.
type machineTime struct{ busy, total int64 }

// readMachine returns the machineTime; nil if the file is missing or cannot be parsed.
func readMachine(root fs.FS) *machineTime {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(string(text), "\n")
	words := strings.Fields(line)
	// cpu user nice system idle iowait irq softirq steal; guests are in user.
	const first, idle, iowait, last = 1, 4, 5, 8
	if len(words) <= last || words[0] != "cpu" {
		return nil
	}
	var t machineTime
	for i := first; i <= last; i++ {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return nil
		}
		t.total += n
		if i != idle && i != iowait {
			t.busy += n
		}
	}
	return &t
}

// groupTime is the CPU time that a cgroup has used, and how many cores it may use.
type groupTime struct {
	name  string
	used  time.Duration
	cores float64
}

// readGroups returns the times of the cgroups that this process is in and that have a bound.
func readGroups(root fs.FS) []groupTime {
	var all []groupTime
	for _, dir := range groupFolders(root, "cpu") {
		cores, ok := groupCores(root, dir)
		if !ok {
			continue
		}
		if used, ok := groupUsed(root, dir); ok {
			all = append(all, groupTime{dir, used, cores})
		}
	}
	return all
}

// groupCores reads cpu.max: "150000 100000" is one and a half processors. Version 1 has both numbers
// in files of their own, and a quota of -1 where there is no bound.
func groupCores(root fs.FS, dir string) (float64, bool) {
	quota, period, _ := strings.Cut(readText(root, dir, "cpu.max"), " ")
	if quota == "" {
		quota, period = readText(root, dir, "cpu.cfs_quota_us"), readText(root, dir, "cpu.cfs_period_us")
	}
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	return q / p, err1 == nil && err2 == nil && q > 0 && p > 0
}

func groupUsed(root fs.FS, dir string) (time.Duration, bool) {
	if n, err := strconv.ParseInt(readText(root, dir, "cpuacct.usage"), 10, 64); err == nil { // version 1
		return time.Duration(n), true
	}
	text, err := fs.ReadFile(root, path.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), "usage_usec "); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}
