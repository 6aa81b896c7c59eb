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

// readMachine returns nil where there is no such file, or none that makes sense.
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

// groupTime is the time that a cgroup has used, and how many processors it may.
type groupTime struct {
	name  string
	used  time.Duration
	cores float64
}

// readGroups gives the cgroups (version 2) that this process is in, from its own to
// the outermost that can be seen, as far as they are bounded.
func readGroups(root fs.FS) []groupTime {
	var all []groupTime
	for _, dir := range groupFolders(root) {
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

func groupFolders(root fs.FS) []string {
	const top = "sys/fs/cgroup"
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		dirs := []string{top}
		for at := top; name != ""; {
			var next string
			next, name, _ = strings.Cut(strings.Trim(name, "/"), "/")
			if next == "" || next == ".." { // a group outside of what can be seen
				break
			}
			at = path.Join(at, next)
			dirs = append(dirs, at)
		}
		return dirs
	}
	return nil
}

// groupCores reads cpu.max: "150000 100000" is one and a half processors.
func groupCores(root fs.FS, dir string) (float64, bool) {
	text, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return 0, false
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	return q / p, err1 == nil && err2 == nil && q > 0 && p > 0
}

func groupUsed(root fs.FS, dir string) (time.Duration, bool) {
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
