package source

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/rules"
)

// limitOf is what a rule admits.
func limitOf(set *rules.Set, name string) int64 {
	for i, l := range set.Limits() {
		if l.Terms.Rule == name {
			return set.Limits()[i].Events
		}
	}
	return -1
}

// A file on disk and two origins, joined, in real time and with the kernel's reports: a change
// of each is in force, with the newest of the others; limits and `instances` change, and
// whoever is named twice has to say `replace`.
func TestFilesAndOriginsTogether(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		file := filepath.Join(t.TempDir(), "base.yaml")
		write(t, file, rule("base", 1)+"instances: 2\n")
		one, two := newStand("one", text("1", rule("one", 1))), newStand("two", text("1", rule("two", 1)))
		w, err := follow(t.Context(), []Layer{{Name: file}, {Origin: one}, {Origin: two}}, Options{Log: slog.New(slog.DiscardHandler)}, p)
		do(t, err)
		defer w.Close()
		wants := func(instances int, limits ...int64) {
			t.Helper()
			names := []string{"base", "one", "two"}
			eventually(t, fmt.Sprintf("%d instances and limits %v; %+v", instances, limits, w.Status()), func() bool {
				set := w.Live().Set()
				for i, n := range limits {
					if limitOf(set, names[i]) != n {
						return false
					}
				}
				return set.Instances() == instances && w.Status().LastError == ""
			})
		}
		wants(2, 1, 1, 1)
		one.publish(text("2", rule("one", 2)))
		wants(2, 1, 2, 1)
		replace(t, file, rule("base", 3)+"instances: 3\n")
		wants(3, 3, 2, 1)
		two.publish(text("2", rule("two", 4)+"instances: 9\nreplace: instances\n"))
		wants(9, 3, 2, 4)
		// A name that an earlier layer has is refused, until the later one says that it replaces it.
		two.publish(text("3", rule("two", 5)+"  - { name: base, per: everyone, limits: 50/hour }\n"))
		eventually(t, "a refusal", func() bool { return w.Status().Layers[2].Refused != nil })
		if r := w.Status().Layers[2].Refused; !strings.Contains(r.Message, file+":3") || !strings.Contains(r.Message, "two: rules.yaml:4:") || w.Status().Layers[0].Refused != nil {
			t.Errorf("%+v", r)
		}
		wantsStill := w.Live().Set()
		// While it is refused, others do not change either: a set is of the newest of all, or not at all.
		one.publish(text("3", rule("one", 6)))
		eventually(t, "another refusal", func() bool { return w.Status().Layers[1].Refused != nil })
		if w.Live().Set() != wantsStill {
			t.Error("a part of a bad set is in force")
		}
		two.publish(text("4", rule("two", 5)+"  - { name: base, replace: true, per: everyone, limits: 50/hour }\n"))
		wants(3, 50, 6, 5)
		names := w.Live().Set().Rules()
		if !slices.Equal(names, []string{"base", "one", "two"}) {
			t.Errorf("rules %v", names)
		}
		st := w.Status()
		for i, l := range st.Layers {
			if l.Behind() || l.Refused != nil || l.Origin != (i > 0) || l.Hash == "" {
				t.Errorf("%+v", l)
			}
		}
		bundles, err := w.Bundles()
		do(t, err)
		var sums []string
		for _, b := range bundles {
			sums = append(sums, b.Sum())
		}
		if joined(sums) != st.Hash || len(bundles) != 3 {
			t.Errorf("the hash is %s, and that of what is handed on %s", st.Hash, joined(sums))
		}
	})
}

// Two origins and a file change at random, and are away at random. Every set that is put into
// force is of states that the layers had, none of them older than before; in the end it is of
// the newest of all.
func TestRandomLayers(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			file := filepath.Join(t.TempDir(), "c.yaml")
			versions := []int{1, 1, 1}
			names := []string{"a", "b", "c"}
			write(t, file, rule("c", 1))
			origins := []*stand{newStand("a", text("1", rule("a", 1))), newStand("b", text("1", rule("b", 1)))}
			w, err := tryFollow(t, Options{Copy: t.TempDir()}, Layer{Origin: origins[0]}, Layer{Origin: origins[1]}, Layer{Name: file})
			do(t, err)
			defer w.Close()
			for range 60 {
				i := random.IntN(3)
				versions[i]++
				n := versions[i]
				switch {
				case i == 2:
					replace(t, file, rule("c", n))
				case random.IntN(4) == 0:
					origins[i].set(func(s *stand) { s.err = errAway })
				default:
					origins[i].publish(text(fmt.Sprint(n), rule(names[i], n)))
				}
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
			for i, s := range origins {
				versions[i]++
				s.publish(text(fmt.Sprint(versions[i]), rule(names[i], versions[i])))
			}
			time.Sleep(lastRetry + 10*time.Second)
			set := w.Live().Set()
			for i, name := range names {
				if got := limitOf(set, name); got != int64(versions[i]) {
					t.Errorf("seed %d: %s admits %d, and its newest version is %d; %+v", seed, name, got, versions[i], w.layer(i))
				}
			}
			was := []int64{1, 1, 1}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, set := range w.reloaded {
				for i, name := range names {
					is := limitOf(set, name)
					if is < was[i] {
						t.Errorf("seed %d: %s went from %d back to %d", seed, name, was[i], is)
					}
					was[i] = is
				}
			}
		})
	}
}

// The hash of several layers depends on all of them and their order.
func TestHashOfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum := func(bundles ...*Bundle) string {
			var layers []Layer
			for i, b := range bundles {
				layers = append(layers, Layer{Origin: newStand(fmt.Sprint("o", i), b)})
			}
			w, err := tryFollow(t, Options{}, layers...)
			do(t, err)
			defer w.Close()
			return w.Status().Hash
		}
		a, b, c := text("1", rule("a", 1)), text("1", rule("b", 1)), text("2", rule("b", 2))
		both := sum(a, b)
		seen := map[string]bool{sum(a): true, both: true, sum(b, a): true, sum(a, c): true, sum(b): true}
		if len(seen) != 5 || sum(a, b) != both || sum(a) != a.Sum() {
			t.Errorf("%v", seen)
		}
	})
}
