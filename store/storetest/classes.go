package storetest

import (
	"context"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// testFloorClasses: requests of three classes share a counter, and each leaves what is set aside for
// those above it. A lower class never takes that, and whoever may have what remains gets it: a request
// passes if and only if as much remains as it costs and has to leave.
func testFloorClasses(s *subject) {
	s.each(func(s *subject, k kind) {
		floors := [...]int64{0, 3, 5} // the most important first
		l := k.brisk("classes", 12)
		r := rand.New(rand.NewPCG(11, 13))
		want := newReference(s.clock.now)
		var passed, refused [len(floors)]int
		ask := func(class int) {
			c := above(check(l, "ann", 1+r.Int64N(3)*r.Int64N(2)), floors[class])
			look := above(c, 0)
			look.Cost = 0
			left, err := want.Take(context.Background(), []tidegate.Check{look}, 1)
			if err != nil {
				s.Fatal(err)
			}
			d := s.takeN(1, c)
			expected, err := want.Take(context.Background(), []tidegate.Check{c}, 1)
			if err != nil {
				s.Fatal(err)
			}
			if !sameAnswer(d, expected) || d.OK != (c.Cost+c.Floor <= left.Remaining) {
				s.Fatalf("Take(%s) with %d left\n\tgot  %s\n\twant %s", describe([]tidegate.Check{c}), left.Remaining, show(d), show(expected))
			}
			if d.OK {
				passed[class]++
			} else {
				refused[class]++
			}
		}
		for range lessIf(s.brief, 150, 60) {
			class := r.IntN(len(floors))
			for range 1 + r.IntN(8) {
				ask(class)
			}
			s.clock.add(time.Duration(r.Int64N(int64(k.period()))) * time.Duration(r.IntN(2)) / step * step)
		}
		for class := range floors {
			if passed[class] == 0 || refused[class] == 0 {
				s.Errorf("of the class %d, %d passed and %d were refused: the test has lost its point", class, passed[class], refused[class])
			}
		}
	})
}
