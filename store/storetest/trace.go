package storetest

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // calendar scripts name zones, wherever they run

	"tidegate.dev/tidegate"
)

// A trace is a script of requests and what must come out. Its lines are
//
//	# prose
//	zone Europe/Berlin        how times are read from here on; UTC until then
//	date 2026-03-28           the day of the times that follow; 2026-01-05 until then
//	limit NAME: 5/1m token_bucket burst 10
//	limit NAME: 5/1m sub_windows parts 6 ceiling
//	limit NAME: 5/1m sliding_log count_rejected
//	limit NAME: 3/month quota zone Europe/Berlin anchor 31
//	limit NAME: 2 slots lease 30s
//	relimit NAME: 9/1m token_bucket
//	at TIME COMMAND NAMES… OPTIONS… -> EXPECTED…
//
// A TIME is 1:00:01 or 13:00:01.000001; times may run back, as clocks do. A
// NAME followed by ? is asked for advice only. relimit changes the numbers of a
// limit; its counters stay. The commands are
//
//	take, acquire             charge, or take a slot; the same to a store
//	peek                      charge nothing
//	return, release  of=X     give back what the take marked as=X got
//	force                     charge unasked
//	renew            of=X     prolong the lease
//	reserve                   take an estimate
//	settle           of=X     replace the estimate by cost=N
//	reset                     forget the keys
//
// with the options cost=N (1), key=K ("key"), wait=D (0s), copies=N (1), as=X
// to remember the receipt, of=X to use it, and times=N to do it N times, with
// numbers expected of the last. Expected is one of
//
//	ok, no, never             of a decision
//	ok, lost                  of renew
//	ok, settled               of settle
//
// and for a decision any of: remaining N, granted N, retry D, reset D, wait D,
// by NAME (the limit that decided). An ok without a wait means no wait at all.

//go:embed testdata/*.trace
var traces embed.FS

func runTraces(t *testing.T, a scope, open func(t *testing.T, now func() time.Time) tidegate.Store) {
	files, err := traces.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".trace"), func(t *testing.T) {
			text, err := traces.ReadFile(path.Join("testdata", f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := parseTrace(f.Name(), string(text))
			if err != nil {
				t.Fatal(err)
			}
			c := newClock()
			p := player{store: limitTo(t, open(t, c.now), a, c), clock: c, receipts: map[string]tidegate.Receipt{}}
			for _, s := range steps {
				if !p.able(s.command) {
					t.Logf("%s:%d: the store has no %s; the rest of the script is not asked of it", s.file, s.line, s.command)
					return
				}
				if err := p.play(s); err != nil {
					t.Fatalf("%s:%d: %v\n\t%s", s.file, s.line, err, s.text)
				}
			}
		})
	}
}

// traceStep is a line that does something.
type traceStep struct {
	file, text string
	line       int
	at         time.Time
	command    string
	checks     []tidegate.Check
	copies     int
	times      int
	as, of     string
	want       expectation
}

// expectation is what stands behind the arrow; nil numbers are not compared.
type expectation struct {
	verdict            string
	remaining, granted *int64
	retry, reset       *time.Duration
	wait               time.Duration
	by                 *tidegate.Limit
}

// parseError names the place in a script.
func parseError(file string, line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
}
