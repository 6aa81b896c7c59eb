package memory

import (
	"runtime"
	"sync/atomic"
)

// slot remembers one key. The state of a key is split by how often it changes:
// word is what nearly every charge changes, by one compare-and-swap; meta, which
// also holds 12 bits of the key's hash, changes with the window or the limit.
//
// word:  busy 1 | generation 4 | fast 59
// meta:  extra 12 | slow 52
//
// A goroutine that sets busy by compare-and-swap owns the slot until it stores the word
// without busy. tag and meta change only while busy is set, and the generation changes
// with them: so if the word is still the same, the tag and meta read after it are valid. A
// vacant slot that was once used stays busy.
type slot struct {
	tag  atomic.Uint64
	meta atomic.Uint64
	word atomic.Uint64
}

const (
	slotBytes = 24

	busyBit  = uint64(1) << 63
	genOne   = uint64(1) << fastBits
	genMask  = uint64(15) << fastBits
	fastBits = 59
	fastMask = uint64(1)<<fastBits - 1
	slowBits = 52
	slowMask = uint64(1)<<slowBits - 1
)

// cell is the state of a key as two packed numbers.
type cell struct {
	slow, fast uint64
}

// read returns the state of k and the word that it was read with, or false when the slot is busy or
// no longer k's. The state is consistent only if the slot still has that word afterwards.
func (s *slot) read(k keyHash) (c cell, word uint64, ok bool) {
	word = s.word.Load()
	meta := s.meta.Load()
	if word&busyBit != 0 || s.tag.Load() != k.tag || meta&^slowMask != k.extra {
		return cell{}, 0, false
	}
	return cell{meta & slowMask, word & fastMask}, word, true
}

// swap replaces the state that was read with word, or reports false if the slot has changed.
func (s *slot) swap(word uint64, k keyHash, old, c cell) bool {
	if c.slow == old.slow {
		return s.word.CompareAndSwap(word, word&genMask|c.fast)
	}
	if !s.word.CompareAndSwap(word, word|busyBit) {
		return false
	}
	s.release(word, k, old, c)
	return true
}

// lock takes ownership of the slot, or reports false when it is busy or no longer k's.
func (s *slot) lock(k keyHash) (c cell, word uint64, ok bool) {
	if c, word, ok = s.read(k); ok {
		c, ok = s.claim(k, c, word)
	}
	return c, word, ok
}

// claim takes ownership of a slot whose state c was just read with word, or reports false.
func (s *slot) claim(k keyHash, c cell, word uint64) (cell, bool) {
	if !s.word.CompareAndSwap(word, word|busyBit) {
		return c, false
	}
	// The generation has few bits and may have wrapped around: look again, now that the
	// slot is ours.
	meta := s.meta.Load()
	if s.tag.Load() != k.tag || meta&^slowMask != k.extra {
		s.word.Store(word)
		return c, false
	}
	c.slow = meta & slowMask
	return c, true
}

// release ends ownership, leaving c.
func (s *slot) release(word uint64, k keyHash, old, c cell) {
	gen := word & genMask
	if c.slow != old.slow {
		gen = (gen + genOne) & genMask
		s.meta.Store(k.extra | c.slow)
	}
	s.word.Store(gen | c.fast)
}

// seize takes ownership of the slot, whatever key it remembers; the caller holds the
// segment's lock, so that nobody else vacates it.
func (s *slot) seize() (word uint64) {
	for i := 0; ; i++ {
		word = s.word.Load()
		if word&busyBit == 0 && s.word.CompareAndSwap(word, word|busyBit) {
			return word
		}
		spin(i)
	}
}

// vacate empties a slot that the caller owns. It stays busy, and the next key gets another
// generation.
func (s *slot) vacate() { s.tag.Store(0) }

// occupy puts k into a vacant slot; the caller holds the segment's lock.
func (s *slot) occupy(k keyHash, c cell) {
	word := s.word.Load()
	if word&busyBit == 0 { // never used before
		s.word.Store(busyBit)
	}
	s.meta.Store(k.extra | c.slow)
	s.tag.Store(k.tag)
	s.word.Store((word+genOne)&genMask | c.fast)
}

// spin waits a moment for the owner of a slot, who holds it for nanoseconds unless it
// is preempted.
func spin(attempt int) {
	if attempt > 4 {
		runtime.Gosched()
	}
}
