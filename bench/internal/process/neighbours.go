package process

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// quiet is the share of the cores that others may take before figures are rough.
const quiet = 0.1

// LookAround tells what others take of the cores while everything of ours is up
// and idle. They disturb all contestants, but not all alike.
func LookAround(ctx context.Context) (string, error) {
	was, err := coreTime()
	if err != nil {
		return "", err
	}
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(2 * time.Second):
	}
	now, err := coreTime()
	if err != nil {
		return "", err
	}
	share := float64(now.busy-was.busy) / float64(max(1, now.all-was.all))
	output := fmt.Sprintf("before the race, others took %.0f %% of the cores", 100*share)
	if share > quiet {
		output += ": the figures are rough"
	}
	rig.Progress("%s", output)
	return output, nil
}

// cores is what the cores did since the machine started.
type cores struct {
	all    int64
	busy   int64
	stolen int64 // of busy: taken by other machines on the same cores
}

func coreTime() (cores, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cores{}, fmt.Errorf("look at the cores (needs Linux): %w", err)
	}
	return parseCores(string(stat))
}

// parseCores reads the first line: user, nice, system, idle, waiting for disks,
// two kinds of interrupts, and what other machines on the same cores took.
func parseCores(stat string) (c cores, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	const figures, idle, waiting, stolen = 8, 3, 4, 7
	if len(fields) <= figures || fields[0] != "cpu" {
		return cores{}, fmt.Errorf("look at the cores: %q is not their time", line)
	}
	for i, field := range fields[1 : figures+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return cores{}, fmt.Errorf("look at the cores: %w", err)
		}
		c.all += n
		if i != idle && i != waiting {
			c.busy += n
		}
		if i == stolen {
			c.stolen = n
		}
	}
	return c, nil
}
