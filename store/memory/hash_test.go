package memory

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// Every bit of the key and of its length changes about half of the hash.
func TestHashAvalanche(t *testing.T) {
	h := newHashKey()
	for _, n := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100} {
		key := []byte(strings.Repeat("x", n))
		base := h.sum(string(key), 1)
		changed, least := 0, 76
		for bit := range 8 * n {
			key[bit/8] ^= 1 << (bit % 8)
			k := h.sum(string(key), 1)
			key[bit/8] ^= 1 << (bit % 8)
			d := bits.OnesCount64(k.tag^base.tag) + bits.OnesCount64(k.extra^base.extra)
			changed += d
			least = min(least, d)
		}
		if mean := float64(changed) / float64(8*n); mean < 32 || mean > 44 || least < 10 {
			t.Errorf("%d bytes: flipping a bit changes %.1f of 76 bits on average, at least %d", n, mean, least)
		}
	}
}

func TestHashTellsKeysApart(t *testing.T) {
	h := newHashKey()
	seen := make(map[keyHash]string)
	add := func(name, key string, salt uint64) {
		k := h.sum(key, salt)
		if other, ok := seen[k]; ok {
			t.Fatalf("%s has the hash of %s", name, other)
		}
		if k.tag == 0 || k.extra&slowMask != 0 {
			t.Fatalf("%s: tag %x extra %x", name, k.tag, k.extra)
		}
		seen[k] = name
	}
	keys := 200_000
	if raceEnabled { // which only takes time where one goroutine asks
		keys = 20_000
	}
	for i := range keys {
		add(fmt.Sprint("decimal ", i), fmt.Sprint(i), 1)
		add(fmt.Sprint("padded ", i), fmt.Sprintf("user:%012d", i), 1)
	}
	for i := range 200 { // runs of one byte differ in nothing but their length
		add(fmt.Sprint("zeros ", i), strings.Repeat("\x00", i), 1)
		add(fmt.Sprint("salt ", i), "same", uint64(i)+2)
	}
}

// The directory goes by the upper bits of the tag, the home by the lower.
func TestHashSpreads(t *testing.T) {
	h := newHashKey()
	const n = 1 << 16
	var upper, lower [256]int
	for i := range n {
		k := h.sum(fmt.Sprint("10.0.", i/256, ".", i%256), 7)
		upper[k.tag>>56]++
		lower[k.tag&255]++
	}
	for i := range 256 {
		for _, c := range []int{upper[i], lower[i]} {
			if c < n/256*2/3 || c > n/256*4/3 {
				t.Fatalf("a part of 1/256 holds %d of %d keys", c, n)
			}
		}
	}
}

func TestHashDependsOnItsKey(t *testing.T) {
	a, b := expandHashKey(1, 2), expandHashKey(1, 3)
	if a.sum("x", 1) == b.sum("x", 1) || a.secret == b.secret {
		t.Error("two hash keys give one hash")
	}
	if c := expandHashKey(1, 2); a.sum("x", 1) != c.sum("x", 1) {
		t.Error("a hash key does not give the same hash twice")
	}
}
