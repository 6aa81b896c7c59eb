package redis

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

const (
	hammers = 8
	strokes = 150
)

// hammered are limits of a period, which turns several times while they are hammered on.
func hammered(period time.Duration) (limits []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow,
		tidegate.SubWindows, tidegate.SlidingLog, tidegate.Concurrency, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: a.String(), Events: 40, Period: period, Algorithm: a}
		switch a {
		case tidegate.LeakyBucket:
			spec.Burst = 20
		case tidegate.SubWindows:
			spec.Parts = 7
		case tidegate.Quota:
			spec.Events, spec.Period, spec.Calendar, spec.Zone = 500, 0, tidegate.Day, "Asia/Tokyo"
		}
		limits = append(limits, tidegate.MustLimit(spec))
	}
	return limits
}

const hammerVariable = "REDIS_HAMMER"

// TestHammer is one of the processes, with a clock of its own. It writes down what it was
// told, and when, by Redis' clock.
func TestHammer(t *testing.T) {
	words := strings.Fields(os.Getenv(hammerVariable))
	if len(words) != 3 {
		return // not in that process: see TestProcesses
	}
	addr := words[0]
	ahead, err := time.ParseDuration(words[1])
	if err != nil {
		t.Fatal(err)
	}
	period, err := time.ParseDuration(words[2])
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{URL: "redis://" + addr, Deadline: patient, node: func() time.Time { return time.Now().Add(ahead) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, l := range hammered(period) {
		for range strokes {
			d := mustTake(t, s, 1, tidegate.Check{Key: "anvil", Limit: l, Cost: 1, MaxWait: 3 * time.Millisecond})
			fmt.Println("stroke", i, d.Receipt.At, d.OK, d.Remaining)
		}
	}
}

// stroke is what somebody was told at an instant of Redis' time.
type stroke struct {
	limit     int
	at        int64
	ok        bool
	remaining int64
}

// Many processes hammer on one key of each algorithm, with clocks that are off by up to
// ten minutes. Put in the order of Redis' time, what they were told is what one that
// counts for all of them would have said, one by one.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for period := 70 * time.Millisecond; ; period *= 4 { // slow machines use up less in a period
		idle := hammer(t, period)
		if idle == "" {
			return
		}
		if period > 5*time.Second {
			t.Fatalf("%s: the test has lost its point", idle)
		}
		t.Logf("with %s: %s", period, idle)
	}
}

// hammer has the processes hammer on limits of a period, and returns the limit of which all
// was admitted or all refused, if there is one.
func hammer(t *testing.T, period time.Duration) (idle string) {
	server := testdep.Redis(t)
	var mu sync.Mutex
	var all []stroke
	var running sync.WaitGroup
	for i := range hammers {
		running.Go(func() {
			skew := time.Duration(i-hammers/2) * 10 * time.Minute / (hammers / 2)
			cmd := exec.Command(os.Args[0], "-test.run=^TestHammer$", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), hammerVariable+"="+server.Addr+" "+skew.String()+" "+period.String())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, readStrokes(t, out)...)
		})
	}
	running.Wait()
	if want := hammers * strokes * len(hammered(period)); len(all) != want {
		t.Fatalf("%d strokes, want %d", len(all), want)
	}
	slices.SortFunc(all, func(a, b stroke) int { return cmp.Compare(a.at, b.at) })
	return replay(t, all, period)
}

func readStrokes(t *testing.T, out []byte) (all []stroke) {
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		f := strings.Fields(in.Text())
		if len(f) != 5 || f[0] != "stroke" {
			continue
		}
		var s stroke
		var errs [4]error
		s.limit, errs[0] = strconv.Atoi(f[1])
		s.at, errs[1] = strconv.ParseInt(f[2], 10, 64)
		s.ok, errs[2] = strconv.ParseBool(f[3])
		s.remaining, errs[3] = strconv.ParseInt(f[4], 10, 64)
		for _, err := range errs {
			if err != nil {
				t.Errorf("%s: %v", in.Text(), err)
			}
		}
		all = append(all, s)
	}
	return all
}

// replay asks a store in memory the same at the same instants, and returns the limit of which
// all was admitted or all refused, if there is one.
func replay(t *testing.T, all []stroke, period time.Duration) (idle string) {
	limits := hammered(period)
	now := time.UnixMicro(all[0].at / 1024)
	s := memory.Open(memory.Config{Now: func() time.Time { return now }})
	admitted, refused := make([]int, len(limits)), make([]int, len(limits))
	for _, got := range all {
		now = time.UnixMicro(got.at / 1024)
		l := limits[got.limit]
		want, err := s.TakeOne(context.Background(), "anvil", l, 1, 3*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if got.ok != want.OK || got.remaining != want.Remaining {
			t.Fatalf("%s at %s: ok %t, %d left; want %t, %d", l, now.Format("05.000000"), got.ok, got.remaining, want.OK, want.Remaining)
		}
		if got.ok {
			admitted[got.limit]++
		} else {
			refused[got.limit]++
		}
	}
	for i, l := range limits {
		if admitted[i] == 0 || refused[i] == 0 {
			idle = fmt.Sprintf("%s: %d admitted and %d refused", l, admitted[i], refused[i])
		}
	}
	t.Logf("admitted %d, refused %d", admitted, refused)
	return idle
}
