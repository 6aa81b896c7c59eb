package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// kind is how the state of a table's keys is kept.
type kind uint8

const (
	buckets  kind = iota // slow: ahead 1 | em 51, fast: drained
	counters             // slow: start of the period, fast: count
	slidings             // slow: window, fast: prev 29 | cur 30
	runs                 // slow: handle of a record, fast: 0; or one entry, see entryCell
	leases               // slow: handle of a record
)

// inRecord reports whether states are in records, which only the owner of a slot reads.
func (k kind) inRecord() bool { return k >= runs }

var kinds = map[tidegate.Algorithm]kind{
	tidegate.TokenBucket:   buckets,
	tidegate.LeakyBucket:   buckets,
	tidegate.FixedWindow:   counters,
	tidegate.Quota:         counters,
	tidegate.SlidingWindow: slidings,
	tidegate.SlidingLog:    runs,
	tidegate.SubWindows:    runs,
	tidegate.Concurrency:   leases,
}

const (
	aheadBit = uint64(1) << (slowBits - 1)
	emMask   = aheadBit - 1
	curBits  = 30
	curMask  = uint64(1)<<curBits - 1
)

func (s *Store) bucket(c cell) algo.Bucket     { return bucketAt(c, s.origin.Load()) }
func (s *Store) bucketCell(b algo.Bucket) cell { return bucketCellAt(b, s.origin.Load()) }

func bucketAt(c cell, origin int64) algo.Bucket {
	if c == (cell{}) {
		return algo.Bucket{}
	}
	return algo.Bucket{Drained: origin + int64(c.fast), Em: int64(c.slow & emMask), Ahead: c.slow&aheadBit != 0}
}

func bucketCellAt(b algo.Bucket, origin int64) cell {
	c := cell{slow: uint64(b.Em), fast: min(uint64(max(0, b.Drained-origin)), fastMask)}
	if b.Ahead {
		c.slow |= aheadBit
	}
	return c
}

func counter(c cell) algo.Counter {
	return algo.Counter{Start: int64(c.slow), Count: int64(c.fast)}
}

func counterCell(n algo.Counter) cell {
	return cell{slow: uint64(n.Start), fast: uint64(n.Count)}
}

func sliding(c cell) algo.Sliding {
	return algo.Sliding{Window: int64(c.slow), Prev: int64(c.fast >> curBits), Cur: int64(c.fast & curMask)}
}

func slidingCell(n algo.Sliding) cell {
	return cell{slow: uint64(n.Window), fast: uint64(n.Prev)<<curBits | uint64(n.Cur)}
}

// Most keys of a log have used one event, and of sub-windows one part. Such an entry is kept in the
// slot, and the key has no record.
//
// slow:  lower bits of the stamp 52
// fast:  entryBit 1 | upper bits of the stamp 12 | parts 16 | count 30
const (
	entryBit       = uint64(1) << (fastBits - 1)
	entryPartsAt   = 30
	entryStampAt   = entryPartsAt + 16
	entryCountMask = uint64(1)<<entryPartsAt - 1
)

func (c cell) isEntry() bool { return c.fast&entryBit != 0 }

func entryOf(c cell) (e algo.Entry) {
	if c.isEntry() {
		e.Stamp = int64((c.fast&^entryBit)>>entryStampAt<<slowBits | c.slow)
		e.Parts = int64(c.fast >> entryPartsAt & 0xffff)
		e.Count = int64(c.fast & entryCountMask)
	}
	return e
}

func entryCell(e algo.Entry) cell {
	if e.Count == 0 {
		return cell{}
	}
	stamp := uint64(e.Stamp)
	return cell{slow: stamp & slowMask, fast: entryBit | stamp>>slowBits<<entryStampAt | uint64(e.Parts)<<entryPartsAt | uint64(e.Count)}
}

// handle names the record of a key, or none.
func (c cell) handle() handle {
	if c.isEntry() {
		return 0
	}
	return handle(c.slow)
}

// span returns the period of lim that contains wall, an instant by the wall clock.
func (lim *compiledLimit) span(wall int64) algo.Span {
	if s := lim.spans.Load(); s != nil && s.Holds(wall/algo.Micro) {
		return *s
	}
	s := spanAt(lim.limit, wall)
	lim.spans.Store(&s)
	return s
}

// spanAt is algo.SpanAt, but lets no period start before the epoch: a slot has no room for a sign.
func spanAt(l *tidegate.Limit, wall int64) algo.Span {
	s := algo.SpanAt(l, wall)
	s.Start = max(0, s.Start)
	return s
}
