package source

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// numbers are the limits of a rule file: of one counter for everybody by parts of
// an hour, of another, and of an exact log for each user.
type numbers struct{ scarce, busy, user int64 }

func (n numbers) text() string {
	return fmt.Sprintf(`version: 1
identify: { user: client header X-User }
rules:
  - { name: scarce, match: /scarce, per: everyone, limits: { rate: %d/hour, algorithm: sub_windows } }
  - { name: busy, match: /busy, per: everyone, limits: { rate: %d/hour, algorithm: sub_windows } }
  - { name: user, match: /user, per: user, limits: { rate: %d/hour, algorithm: sliding_log } }
`, n.scarce, n.busy, n.user)
}

const users = 50

// traffic asks a gate for 10,000 decisions a second, or as many as it gets, and
// counts what is admitted.
type traffic struct {
	gate     *tidegate.Gate
	asked    atomic.Int64
	admitted [3]atomic.Int64 // scarce, busy, user
	limit    [3]atomic.Int64 // that the last decision was about
	errors   atomic.Int64
}

func (tr *traffic) ask(t *testing.T, n int64) {
	kind := int(n % 3)
	r := tidegate.Request{Method: "GET", Path: [3]string{"/scarce", "/busy", "/user"}[kind]}
	r.Values = values{"client header X-User": strconv.FormatInt(n/3%users, 10)}
	d := tr.gate.Decide(t.Context(), &r)
	if d.Err != nil || d.Limit == nil {
		tr.errors.Add(1)
		return
	}
	if d.OK {
		tr.admitted[kind].Add(1)
	}
	tr.limit[kind].Store(d.Limit.Events)
}

func (tr *traffic) run(t *testing.T, rate int64, stop <-chan struct{}) {
	var wg sync.WaitGroup
	began := time.Now()
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				due := int64(time.Since(began).Seconds() * float64(rate))
				for range 1000 { // then look whether to stop
					n := tr.asked.Add(1)
					if n > due {
						tr.asked.Add(-1)
						break
					}
					tr.ask(t, n)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d decisions, %.0f a second", tr.asked.Load(), float64(tr.asked.Load())/time.Since(began).Seconds())
}

// Under 10,000 requests a second a change holds within a second, no request
// fails, and no count is lost, also when the file is broken in between.
func TestReloadUnderLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	now := numbers{scarce: 100, busy: 2000, user: 10}
	most := now
	write(t, file, now.text())
	w, err := Watch(t.Context(), file, Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	do(t, err)
	defer w.Close()

	tr := &traffic{gate: tidegate.NewGate(w.Live(), memory.New())}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); tr.run(t, 10_000, stop) }()
	defer func() { <-ended }()
	end := sync.OnceFunc(func() { close(stop) })
	defer end()

	// Every limit is used up before the next step, so that what is admitted is
	// the highest limit there has been: nobody is refilled, nothing is counted
	// twice.
	usedUp := func() {
		t.Helper()
		for kind, want := range []int64{most.scarce, most.busy, most.user * users} {
			eventually(t, fmt.Sprintf("%d admitted of kind %d", want, kind), func() bool { return tr.admitted[kind].Load() >= want })
			if got := tr.admitted[kind].Load(); got != want {
				t.Errorf("%d admitted of kind %d under at most %d", got, kind, want)
			}
		}
	}
	usedUp()
	slow := 0 // steps that took too long without a standstill, of which many short ones may make one
	for i, step := range []struct {
		wreck func()
		to    numbers
	}{
		{func() {}, numbers{150, 3000, 11}},
		{func() { replace(t, file, "nonsense") }, numbers{120, 2500, 5}}, // lower: nobody is let in
		{func() { do(t, os.Remove(file)) }, numbers{200, 4000, 20}},
		{func() { write(t, file, "") }, numbers{201, 4001, 21}},
		{func() { replace(t, file, now.text()[:150]) }, numbers{300, 6000, 40}},
	} {
		failed := w.Status().Failed
		step.wreck()
		if i > 0 {
			eventually(t, "the broken file shown", func() bool { return w.Status().Failed > failed })
		}
		now = step.to
		most = numbers{max(most.scarce, now.scarce), max(most.busy, now.busy), max(most.user, now.user)}
		replace(t, file, now.text())
		wrote := time.Now()
		stood := testdep.Standstill(func() {
			for kind, want := range []int64{now.scarce, now.busy, now.user} {
				eventually(t, "the new limit in force", func() bool { return tr.limit[kind].Load() == want })
			}
		})
		took := time.Since(wrote)
		t.Logf("step %d: the new limits held after %s, with a standstill of %s", i, took, stood)
		if took > time.Second && stood < 100*time.Millisecond {
			slow++
		}
		usedUp()
	}
	end()
	<-ended
	if slow > 1 {
		t.Errorf("%d changes took more than a second until they held", slow)
	}

	// The oracle: what was admitted is the limit, and one more is not.
	for n := range int64(3 * users) {
		tr.ask(t, n)
	}
	usedUp()
	if n := tr.errors.Load(); n > 0 {
		t.Errorf("%d decisions failed", n)
	}
	if s := w.Status(); s.Reloads != 5 || s.Failed != 4 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

// At the pace that users have, with the reports of the kernel and without. A change that
// takes longer while the machine stands still is made again, and one that does although no
// standstill is seen is made again once.
func TestAChangeHoldsWithinASecond(t *testing.T) {
	for _, silent := range []bool{false, true} {
		p := usual
		p.silent = silent
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(1))
		w := start(t, file, p)
		for n, again, slow := int64(2), 0, 0; n < 4; n++ {
			var took time.Duration
			stood := testdep.Standstill(func() {
				replace(t, file, limit(int(n)))
				wrote := time.Now()
				w.wants(n)
				took = time.Since(wrote)
			})
			if took <= time.Second {
				continue
			}
			if stood < 100*time.Millisecond {
				slow++
			}
			if again++; again > 10 || slow > 1 {
				t.Fatalf("silent %t: it took %s", silent, took)
			}
			write(t, file, limit(int(n)-1))
			w.wants(n - 1)
			n--
		}
	}
}
