package algo

import (
	"fmt"
	"slices"
	"testing"
)

// entries lists what a record holds.
func (p runPacking) entries(r Runs) (all []sliceCharge) {
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
		p := runPacking{bits: uint(40 + in.upTo(14))}
		room := 1 + in.upTo(7)
		longest := int64(1)<<(63-p.bits) - 1 // within the first and the last stamp
		r := NewRecord(int(RunsHeader + room))
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
				r.Shift(d)
				for i := range list {
					list[i].slice += d
				}
				now += d
			case 3:
				what = "copy"
				next := NewRecord(r.Words() + int(in.upTo(1)))
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
			if got := p.entries(r); !slices.Equal(got, list) || r.Used() != total || r.len() != len(list) {
				t.Fatalf("seed %d: after %s\n%v of %d, want\n%v of %d", seed, what, got, r.Used(), list, total)
			}
		}
	}
}

// TestSqueeze: whatever was pushed, and however often there was no room, every
// event is still held, none leaves earlier than it should, and none later than by
// a cell of the window.
func TestSqueeze(t *testing.T) {
	p := logShape
	for _, room := range []int{1, 4, 5, 9, 13, 21, 45, 93, 189} {
		for seed := range uint64(20 / thin) {
			in := randomTape(seed, 4000)
			r := NewRecord(RunsHeader + room)
			var exact []sliceCharge
			const window = 10_000
			now := 1 << 40
			pace := 1 + int(in.upTo(400))
			for !in.done() {
				now += int(in.upTo(int64(pace)))
				stamp := int64(now)
				for r.len() > 0 {
					if oldest, _ := p.at(r, 0); oldest > stamp-window {
						break
					}
					p.drop(r)
				}
				if !p.fits(r, stamp) {
					if ok := p.squeeze(r, window); ok != (room >= minSqueeze) {
						t.Fatalf("%d entries: squeezed is %v", room, ok)
					} else if !ok {
						break
					}
				}
				p.push(r, stamp, 1)
				exact = append(exact, sliceCharge{stamp, 1})
				cell := int64(window+room-1)/int64(room-max(2, room/4)) + 1
				for exact[0].slice <= stamp-window-cell {
					exact = exact[1:]
				}
				held, due, late := r.total(), int64(0), int64(len(exact))
				for _, e := range exact {
					if e.slice > stamp-window {
						due++
					}
				}
				if held < due || held > late {
					t.Fatalf("%d entries, seed %d: %d held, %d are in the window, %d if it were a cell longer", room, seed, held, due, late)
				}
			}
		}
	}
}
