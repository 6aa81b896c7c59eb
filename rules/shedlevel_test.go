package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// levels are the levels of each second under a strain, looked at ten times a second.
func levels(l shedLevel, most int, from, seconds int, strains func(at time.Duration) strain) (after shedLevel, all []int) {
	for i := range seconds * 10 {
		now := time.Duration(from)*time.Second + time.Duration(i)*100*time.Millisecond
		l = l.step(now, strains(now), most)
		if i%10 == 9 {
			all = append(all, l.steps)
		}
	}
	return l, all
}

func always(s strain) func(time.Duration) strain { return func(time.Duration) strain { return s } }

// A step up a second while a signal is above its bound, a step down in five while all are well below, and
// one in thirty while one is near.
func TestShedPace(t *testing.T) {
	want := func(what string, got []int, want ...int) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	l, got := levels(shedLevel{}, 4, 0, 7, always(over))
	want("over, up to the most", got, 0, 1, 2, 3, 4, 4, 4)
	l, got = levels(l, 4, 7, 17, always(calm))
	want("calm", got, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1)
	l, got = levels(l, 4, 24, 2, always(over))
	want("over again", got, 1, 2)
	at, _ := levels(l, 4, 26, 29, always(near))
	if at.steps != 2 {
		t.Errorf("after 29 s near the bound: %d", at.steps)
	}
	at, _ = levels(at, 4, 55, 2, always(near))
	if at.steps != 1 {
		t.Errorf("after 31 s near the bound: %d", at.steps)
	}
}

// A moment above the bound, or below it, moves nothing.
func TestShedIgnoresMoments(t *testing.T) {
	blips := func(at time.Duration) strain {
		if at%(2*time.Second) < 900*time.Millisecond {
			return over
		}
		return calm
	}
	if l, _ := levels(shedLevel{}, 10, 0, 300, blips); l.steps != 0 {
		t.Errorf("moments above the bound: %d", l.steps)
	}
	l, _ := levels(shedLevel{}, 10, 0, 20, always(over))
	dips := func(at time.Duration) strain {
		if at%(6*time.Second) < 4*time.Second {
			return calm
		}
		return over
	}
	if l, _ = levels(l, 10, 20, 600, dips); l.steps != 10 {
		t.Errorf("moments below the bound: %d", l.steps)
	}
}

// Whatever happened before, it comes down to nothing once the signals are calm, or near their bounds and
// never above, or trembling between the two: it does not stick.
func TestShedDoesNotStick(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, _ := levels(shedLevel{}, 20, 0, 1+r.IntN(200), func(time.Duration) strain { return strain(r.IntN(3)) })
		l, _ = levels(l, 20, 200, 1+r.IntN(30), always(over))
		for name, s := range map[string]func(time.Duration) strain{
			"calm": always(calm), "near": always(near), "trembling": func(time.Duration) strain { return strain(r.IntN(2)) },
		} {
			if after, _ := levels(l, 20, 231, 60+31*20, s); after.steps != 0 {
				t.Fatalf("seed %d: %d steps after eleven minutes of %s", seed, after.steps, name)
			}
		}
	}
}

// While nobody looks, it comes down at the same pace.
func TestShedWhileNobodyAsks(t *testing.T) {
	l, _ := levels(shedLevel{}, 20, 0, 12, always(over))
	before := l.steps
	if got := l.step(12*time.Second+27*time.Second, over, 20).steps; got != before-5 {
		t.Errorf("after 27 s: %d, want %d", got, before-5)
	}
	if got := l.step(time.Hour, over, 20).steps; got != 0 {
		t.Errorf("after an hour: %d", got)
	}
	if got := l.step(13*time.Second, calm, 5).steps; got != 5 {
		t.Errorf("with fewer classes: %d", got)
	}
}

// plant is a service whose signal follows the load that it gets, with a lag.
type plant struct {
	capacity float64 // at which the signal is at its bound of 1
	value    float64
}

// load tells of a load for a tenth of a second.
func (p *plant) load(offered float64) {
	p.value += (offered/p.capacity - p.value) * (1 - math.Exp(-0.1)) // an average over a second
}

// run is what a level makes of the load of each tenth of a second: it returns the levels.
func (p *plant) run(l shedLevel, most, from, seconds int, offered float64) (after shedLevel, all []int) {
	for i := range seconds * 10 {
		p.load(offered * (1 - float64(l.steps)/float64(most)))
		l = l.step(time.Duration(from)*time.Second+time.Duration(i)*100*time.Millisecond, strainOf(p.value, 1), most)
		all = append(all, l.steps)
	}
	return l, all
}

// Under a steady overload of any size it finds a level and stays near it: it does not flap. Once the load
// has gone, everything is admitted again.
func TestShedFindsALevel(t *testing.T) {
	for _, most := range []int{10, 20, 30} {
		for _, offered := range []float64{1.05, 1.3, 2, 3, 5, 9} {
			t.Run(fmt.Sprint(most, " steps, ", offered, " times"), func(t *testing.T) {
				p := &plant{capacity: 100}
				l, _ := p.run(shedLevel{}, most, 0, 60, 100*offered)
				l, all := p.run(l, most, 60, 600, 100*offered)
				needed := int(math.Ceil(float64(most) * (1 - 1/offered)))
				moves := 0
				for i := range all {
					if i > 0 && all[i] != all[i-1] {
						moves++
					}
					if all[i] > min(most, needed+5) || all[i] < needed-3 {
						t.Fatalf("after %d s the level is %d; %d are needed", 60+i/10, all[i], needed)
					}
				}
				if moves > 60 {
					t.Errorf("it moves %d times in ten minutes", moves)
				}
				if l, _ = p.run(l, most, 660, 60+200, 20); l.steps != 0 {
					t.Errorf("more than four minutes after the load it is %d", l.steps)
				}
			})
		}
	}
}

// The least important class goes first, tenth by tenth, then the next.
func TestShedOrder(t *testing.T) {
	f := func(steps, rank, tenth, want int) {
		t.Helper()
		if got := (shedLevel{steps: steps}).above(rank, tenth); got != want {
			t.Errorf("%d steps: class %d, tenth %d is above by %d, want %d", steps, rank, tenth, got, want)
		}
	}
	f(0, 0, 0, 0)
	f(1, 0, 0, 1)
	f(1, 0, 1, 0)
	f(10, 0, 9, 1)
	f(10, 1, 0, 0)
	f(11, 1, 0, 1)
	f(11, 0, 9, 2)
	f(20, 1, 9, 1)
	f(20, 2, 0, 0)
}
