// Package process measures and starts processes: memory is measured in a fresh
// child process, in which nothing else has left traces.
package process

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// SettledRSS returns the resident memory, in bytes, after everything that is not
// referenced has been given back to the system.
func SettledRSS() (int64, error) {
	runtime.GC()
	debug.FreeOSMemory()
	return RSS()
}

// RSS returns the resident memory of this process in bytes.
func RSS() (int64, error) { return statusField("VmRSS") }

// PeakRSS returns the most that RSS has been.
func PeakRSS() (int64, error) { return statusField("VmHWM") }

func statusField(name string) (int64, error) {
	const file = "/proc/self/status"
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read resident memory (needs Linux): %w", err)
	}
	return parseStatus(string(status), name)
}

func parseStatus(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process status: %s is %q: %w", name, strings.TrimSpace(value), err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("process status has no %s", name)
}
