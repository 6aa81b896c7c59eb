// Package rig is the frame of every rig of this module: it runs until it is done or told
// to stop, reports progress, compares the results with the bars, and ends with one line
// that a script can read. Start with [Main].
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ErrMissed is returned when a bar is missed; which one has been said by then.
var ErrMissed = errors.New("a bar is missed")

// Main runs a rig for at most so long, and ends the program with 1 if it fails.
func Main(name string, most time.Duration, run func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not done within %s", most))
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil {
		return
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause // whatever that has broken
	}
	if !errors.Is(err, ErrMissed) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(1)
}

// Progress goes to stderr, so that stdout is the result alone.
func Progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// Conclude prints the last line and, if it is to be checked, what is missed before it.
func Conclude(out io.Writer, check bool, last fmt.Stringer, missed []string) error {
	if check {
		for _, m := range missed {
			fmt.Fprintln(out, "missed:", m)
		}
	}
	fmt.Fprintln(out, last)
	if check && len(missed) > 0 {
		return ErrMissed
	}
	return nil
}

// Bar is a promise, and what came out.
type Bar struct {
	Name      string
	Got, Want float64
	AtMost    bool
	Unit      string
}

// Missed tells of the bars that do not hold.
func Missed(bars ...Bar) (missed []string) {
	for _, b := range bars {
		if b.missed() {
			missed = append(missed, b.tell("bar"))
		}
	}
	return missed
}

// TellAims prints which aims are not reached yet. An aim is a bar to come: missing it fails nothing,
// and is never silent.
func TellAims(out io.Writer, aims ...Bar) {
	for _, b := range aims {
		if b.missed() {
			fmt.Fprintln(out, "not yet:", b.tell("aim"))
		}
	}
}

func (b Bar) missed() bool {
	if b.AtMost {
		return !(b.Got <= b.Want) // NaN is missed as well
	}
	return !(b.Got >= b.Want)
}

func (b Bar) tell(kind string) string {
	least := "at least"
	if b.AtMost {
		least = "at most"
	}
	return fmt.Sprintf("%s is %.3g%s, the %s is %s %.3g%s", b.Name, b.Got, b.Unit, kind, least, b.Want, b.Unit)
}

// FewestAllocs is below what the runtime itself allocates once in a while.
const FewestAllocs = 0.005

// Allocs writes allocations per decision, without those.
func Allocs(n float64) string {
	if n < FewestAllocs {
		return "0"
	}
	return fmt.Sprintf("%.2f", n)
}
