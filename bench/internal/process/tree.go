package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's account of processes, the same on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// TreeTime returns what a process and its children that live have taken of the cores:
// the work of nginx is done by its children.
func TreeTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time (needs Linux): %w", err)
	}
	sum, err := parseStat(string(stat))
	if err != nil {
		return 0, err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	for _, child := range strings.Fields(string(children)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: child %q of process %d: %w", child, pid, err)
		}
		t, err := TreeTime(n)
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// parseStat adds up the time in user and in kernel mode, fields 14 and 15. Field 2
// is the name in parentheses, which may contain anything.
func parseStat(stat string) (time.Duration, error) {
	rest := stat[strings.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(rest)
	const user, kernel = 14 - 3, 15 - 3
	if len(fields) <= kernel {
		return 0, fmt.Errorf("read CPU time: %q has too few fields", stat)
	}
	u, errU := strconv.ParseInt(fields[user], 10, 64)
	k, errK := strconv.ParseInt(fields[kernel], 10, 64)
	if errU != nil || errK != nil {
		return 0, fmt.Errorf("read CPU time: %q and %q are not times", fields[user], fields[kernel])
	}
	return time.Duration(u+k) * tick, nil
}
