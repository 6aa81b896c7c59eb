package algo

import (
	"fmt"
	"slices"
	"testing"
)

// entries lists what a record holds.
func (p runsShape) entries(r Runs) (all []sliceCharge) {
	for i := range r.len() {
		stamp, count := p.at(r, i)
		all = append(all, sliceCharge{stamp, count})
	}
	return all
}

// TestRuns holds a ring to a plain list. Few bits for the stamp make it move
// its base all the time.
func TestRuns(t *testing.T) {
	for seed := range uint64(500) {
		in := randomTape(seed, 600)
		p := runsShape{bits: uint(40 + in.upTo(14))}
		room := 1 + in.upTo(7)
		longest := int64(1)<<(63-p.bits) - 1 // within the first and the last stamp
		r := make(Runs, RunsHeader+room)
		var list []sliceCharge
		now := in.upTo(1 << 50)
		for !in.done() {
			var what string
			switch in.byte() % 8 {
			case 0:
				if what = "drop"; len(list) > 0 {
					p.drop(r)
					list = list[1:]
				}
			case 1:
				if what = "take back"; len(list) > 0 {
					i, n := in.upTo(int64(len(list)-1)), 1+in.upTo(3)
					p.takeBack(r, list[i].slice, n)
					if list[i].n -= min(n, list[i].n); list[i].n == 0 {
						list = slices.Delete(list, int(i), int(i)+1)
					}
				}
			case 2:
				d := in.upTo(100) - 50
				what = fmt.Sprintf("shift by %d", d)
				r.shift(d)
				for i := range list {
					list[i].slice += d
				}
				now += d
			case 3:
				what = "copy"
				next := make(Runs, len(r)+int(in.upTo(1)))
				r.CopyTo(next)
				r = next
			default:
				now += in.upTo(longest / 4)
				for len(list) > 0 && now-list[0].slice > longest {
					p.drop(r)
					list = list[1:]
				}
				what = fmt.Sprintf("push at %d", now)
				last := len(list) - 1
				same := last >= 0 && list[last].slice == now
				if fits := same || len(list) < r.room(); p.fits(r, now) != fits {
					t.Fatalf("seed %d: fits is %v", seed, !fits)
				} else if !fits {
					continue
				}
				n := 1 + in.upTo(5)
				p.push(r, now, n)
				if same {
					list[last].n += n
				} else {
					list = append(list, sliceCharge{now, n})
				}
			}
			var total int64
			for _, e := range list {
				total += e.n
			}
			if got := p.entries(r); !slices.Equal(got, list) || r.Used() != total || r.Entries() != len(list) {
				t.Fatalf("seed %d: after %s\n%v of %d, want\n%v of %d", seed, what, got, r.Used(), list, total)
			}
		}
	}
}

// TestSqueeze: every event is still held, none leaves earlier, and the record
// has room again.
func TestSqueeze(t *testing.T) {
	p := logShape
	for n := range int64(9) {
		for head := range int64(4) {
			r := make(Runs, RunsHeader+9)
			for i := range head {
				p.push(r, i, 1)
			}
			for i := range n {
				p.push(r, 100+i, 1+i)
				for r.len() > int(i)+1 {
					p.drop(r)
				}
			}
			if n == 0 {
				for r.len() > 0 {
					p.drop(r)
				}
			}
			before, used := p.entries(r), r.Used()
			p.squeeze(r, 109)
			after := p.entries(r)
			if int64(len(after)) != (n+1)/2 || r.Used() != used || n > 0 && !p.fits(r, 109) {
				t.Fatalf("%v became %v, %d used of %d", before, after, r.Used(), used)
			}
			until := func(all []sliceCharge, stamp int64) (n int64) {
				for _, e := range all {
					if e.slice <= stamp {
						n += e.n
					}
				}
				return n
			}
			for s := int64(99); s < 110; s++ {
				if until(after, s) > until(before, s) {
					t.Fatalf("%v became %v: more leaves at %d", before, after, s)
				}
			}
		}
	}
}
