package redis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomNames are some names of shards, of all kinds.
func randomNames(r *rand.Rand, n int) []string {
	kinds := []func(i int) string{
		func(i int) string { return string(rune('a'+i%26)) + fmt.Sprint(i/26) },
		func(i int) string { return fmt.Sprintf("redis-%d.limits.example.com", i) },
		func(i int) string { return fmt.Sprint(i) },
		func(int) string { return fmt.Sprintf("%x", r.Uint64()) },
	}
	kind := kinds[r.IntN(len(kinds))]
	first := r.IntN(1000)
	names := make([]string, n)
	for i := range names {
		names[i] = kind(first + i)
	}
	return names
}

// namesOf is the owner of each slot by name.
func namesOf(names []string) []string {
	all := make([]string, slotCount)
	for slot, i := range rendezvous(names) {
		all[slot] = names[i]
	}
	return all
}

// Whatever the names: shards have about the same number of slots; the order of the list makes
// no difference; a shard that is added takes slots from all others alike and nothing else
// moves; one that is removed gives up its own slots and no other.
func TestRendezvous(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		names := randomNames(r, 2+r.IntN(15))
		before := namesOf(names)

		// The number of slots of a shard is binomial: six standard deviations are for never.
		share := float64(slotCount) / float64(len(names))
		slack := 6 * math.Sqrt(share*(1-1/float64(len(names))))
		counts := make(map[string]int)
		for _, name := range before {
			counts[name]++
		}
		for _, name := range names {
			if off := math.Abs(float64(counts[name]) - share); off > slack {
				t.Errorf("seed %d: %s of %d shards has %d slots, want %.0f ± %.0f", seed, name, len(names), counts[name], share, slack)
			}
		}

		shuffled := slices.Clone(names)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if !slices.Equal(namesOf(shuffled), before) {
			t.Errorf("seed %d: %q and %q have different owners", seed, names, shuffled)
		}

		const added = "one.more"
		moved := make(map[string]int) // by where slots come from
		for slot, name := range namesOf(append(slices.Clone(names), added)) {
			switch {
			case name == added:
				moved[before[slot]]++
			case name != before[slot]:
				t.Fatalf("seed %d: slot %d moves from %s to %s, as %s is added", seed, slot, before[slot], name, added)
			}
		}
		part := 1 / float64(len(names)+1)
		for _, name := range names {
			want := float64(counts[name]) * part
			if off := math.Abs(float64(moved[name]) - want); off > 6*math.Sqrt(want*(1-part)) {
				t.Errorf("seed %d: %s gives %d of its %d slots to a new shard, want %.0f", seed, name, moved[name], counts[name], want)
			}
		}

		gone := names[r.IntN(len(names))]
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == gone })
		for slot, name := range namesOf(left) {
			if before[slot] != gone && name != before[slot] {
				t.Fatalf("seed %d: slot %d moves from %s to %s, as %s is removed", seed, slot, before[slot], name, gone)
			}
		}
	}
}

// The owners are the same in every version: gateways of several share counters.
func TestRendezvousStays(t *testing.T) {
	owners := namesOf([]string{"a", "b", "c"})
	var sum uint64
	for slot, name := range owners {
		sum = mix(sum + uint64(slot)*31 + uint64(name[0]))
	}
	if got, want := fmt.Sprintf("%s%s%s%s %x", owners[0], owners[1], owners[100], owners[slotCount-1], sum), "cabb 82abe11fbf247efc"; got != want {
		t.Errorf("owners are %s, want %s", got, want)
	}
}
