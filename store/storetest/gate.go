package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// wrongPasswords is what a try is held to: a limit that counts those answered with
// 401, and the block that a refusal starts.
type wrongPasswords []tidegate.Check

func (w wrongPasswords) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, w...)
}

func newWrongPasswords(l *tidegate.Limit, key string) wrongPasswords {
	spec := l.Spec
	block := tidegate.MustLimit(tidegate.Spec{Name: spec.Name, Scope: "block", Events: 1, Period: 15 * time.Minute, Terms: &tidegate.Terms{Role: tidegate.Blocks}})
	spec.Terms = &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: block, Counts: []tidegate.StatusRange{{From: 401, To: 401}}}}
	return wrongPasswords{check(tidegate.MustLimit(spec), key, 1), {Key: key, Limit: block}}
}

// testSettledBlocks: a Gate on the store blocks a key when it is refused and the
// failures that are known are as many as the limit. Tries in flight hold places and
// block nobody, in whatever order they end. Every history of four steps is played,
// and some long ones.
func testSettledBlocks(s *subject) {
	r := rand.New(rand.NewPCG(1, 12))
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency || k.spec.Algorithm == tidegate.LeakyBucket {
			return // slots start no block, and a turn that others follow is not given back
		}
		played := 0
		play := func(capacity int, steps []int) {
			s.Helper()
			played++
			w := newWrongPasswords(k.slow("login", int64(capacity)), fmt.Sprint("ann ", played))
			store := s.whole("vectors", "returns")
			gates := []*tidegate.Gate{tidegate.NewGate(w, store), tidegate.NewGate(w, store)}
			if err := playTries(gates, capacity, steps); err != nil {
				s.Fatal(err)
			}
		}
		for n := 0; n < 7*7*7; n += lessIf(s.brief, 1, 8) {
			play(1, []int{0, n % 7, n / 7 % 7, n / 49, 0, 0})
		}
		for range lessIf(s.brief, 40, 5) {
			steps := make([]int, 40)
			for i := range steps {
				steps[i] = max(0, r.IntN(14)-7)
			}
			play(3, steps)
		}
	})
}

// tries is a key as it should be: failures that are known, tries in flight, and
// whether it is blocked.
type tries struct {
	capacity, failed, flying int
	blocked                  bool
}

func (m *tries) enter() (ok bool) {
	switch {
	case m.blocked:
	case m.failed+m.flying < m.capacity:
		m.flying++
		return true
	case m.failed >= m.capacity:
		m.blocked = true
	}
	return false
}

func (m *tries) end(status int) {
	m.flying--
	if status != 200 {
		m.failed++
	}
}

// play lets steps happen to a key that several gates decide about, and to the model:
// 0 enters, others end a try that is in flight, the oldest or the latest, in one of
// three ways. A step that makes no sense is none.
func playTries(gates []*tidegate.Gate, capacity int, steps []int) error {
	m := tries{capacity: capacity}
	var flying []*tidegate.Visit
	for i, step := range steps {
		if step == 0 {
			d, v := gates[i%len(gates)].Enter(context.Background(), &tidegate.Request{})
			ok := m.enter()
			switch {
			case d.OK != ok:
				return fmt.Errorf("%v: step %d admitted %t: %+v, want %+v", steps, i+1, d.OK, d, m)
			case ok:
				flying = append(flying, v)
			case m.blocked != (d.RetryAfter > time.Second):
				return fmt.Errorf("%v: step %d is told to come back in %s: want %+v", steps, i+1, d.RetryAfter, m)
			}
			continue
		}
		if len(flying) == 0 {
			continue
		}
		status := []int{401, 200, 0}[(step-1)%3]
		which := 0
		if step > 3 {
			which = len(flying) - 1
		}
		if err := flying[which].End(tidegate.Outcome{Status: status}); err != nil {
			return err
		}
		flying = append(flying[:which], flying[which+1:]...)
		m.end(status)
	}
	return nil
}
