// Package keybuf makes millions of keys without garbage, so that the heap of a rig
// is not mistaken for the store's.
package keybuf

import "unsafe"

// Buffer is where one key at a time is written; the zero value is ready.
type Buffer struct{ room [64]byte }

// Key is prefix and n in eight hex digits or more. It is valid until the next
// call: good for a [tidegate.Store], which keeps no reference to a check, and
// for nothing that keeps its keys.
func (b *Buffer) Key(prefix string, n int) string {
	key := append(b.room[:0], prefix...)
	digits := 8
	for n>>(4*digits) != 0 {
		digits++
	}
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		key = append(key, "0123456789abcdef"[n>>shift&15])
	}
	return unsafe.String(&key[0], len(key))
}
