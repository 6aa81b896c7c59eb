package deferq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// pages reads the pages of a bbolt file without trusting them. bbolt maps the file into memory and
// follows the numbers in its pages: if one is wrong, or the file was truncated, it may access
// memory outside of the file, and the fault ends the process.
type pages struct {
	file io.ReaderAt
	size int64  // of a page
	all  uint64 // number of pages, including free ones
	seen map[uint64]bool
}

// The layout of a page: its number, kind, number of elements, and number of overflow pages; then
// the elements.
const (
	pageHead    = 16
	elementSize = 16
	branchPage  = 0x01
	leafPage    = 0x02
	freePage    = 0x10
	bucketHead  = 16
	bucketFlag  = 0x01
	noFreelist  = ^uint64(0)
	// deepest exceeds the depth of any tree that fits on a disk.
	deepest = 64
)

// sound returns what is wrong with the pages of a file; nil if every reachable page is inside the
// file and reached once.
func sound(file *os.File, pageSize int) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p := &pages{file: file, size: int64(pageSize), seen: map[uint64]bool{0: true, 1: true}}
	root, free, err := p.meta()
	if err != nil {
		return err
	}
	if has := uint64(info.Size() / p.size); has < p.all {
		return fmt.Errorf("it was cut: it has %d pages of %d", has, p.all)
	}
	if free != noFreelist {
		if err := p.freelist(free); err != nil {
			return err
		}
	}
	return p.tree(root, 0)
}

// meta returns the pages of the root and of the free list. Of the first two pages that are not
// damaged, the one with the higher transaction number has them.
func (p *pages) meta() (root, free uint64, err error) {
	const length = 64 // magic, version, page size, flags, root, sequence, free list, pages, transaction, checksum
	last, found := uint64(0), false
	for at := range int64(2) {
		raw := make([]byte, length)
		if _, err := p.file.ReadAt(raw, at*p.size+pageHead); err != nil {
			return 0, 0, fmt.Errorf("page %d: %w", at, err)
		}
		sum := fnv.New64a()
		_, _ = sum.Write(raw[:56]) // it never fails
		number := func(at int) uint64 { return binary.NativeEndian.Uint64(raw[at:]) }
		if number(56) != sum.Sum64() || found && number(48) < last {
			continue
		}
		last, found = number(48), true
		root, free, p.all = number(16), number(32), number(40)
	}
	if !found {
		return 0, 0, errors.New("both of its first pages are damaged")
	}
	return root, free, nil
}

// page is the header of a page.
type page struct {
	at     int64 // in the file
	length int64 // with its overflow pages
	kind   uint16
	count  int
}

// open reads the header of a page. It fails if the page was visited before.
func (p *pages) open(id uint64) (page, error) {
	if id < 2 || id >= p.all {
		return page{}, fmt.Errorf("there is no page %d: the file has %d pages", id, p.all)
	}
	var raw [pageHead]byte
	at := int64(id) * p.size
	if _, err := p.file.ReadAt(raw[:], at); err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	more := uint64(binary.NativeEndian.Uint32(raw[12:]))
	if is := binary.NativeEndian.Uint64(raw[:]); is != id {
		return page{}, fmt.Errorf("page %d says that it is %d", id, is)
	}
	if id+more >= p.all {
		return page{}, fmt.Errorf("page %d goes on for %d pages, and there are %d", id, more, p.all)
	}
	for i := id; i <= id+more; i++ {
		if p.seen[i] {
			return page{}, fmt.Errorf("page %d is in two places", i)
		}
		p.seen[i] = true
	}
	return page{
		at: at, length: int64(more+1) * p.size,
		kind: binary.NativeEndian.Uint16(raw[8:]), count: int(binary.NativeEndian.Uint16(raw[10:])),
	}, nil
}

// freelist checks the list of free pages. A list of 65535 or more stores its length in its first
// element.
func (p *pages) freelist(id uint64) error {
	g, err := p.open(id)
	if err != nil {
		return err
	}
	if g.kind != freePage {
		return fmt.Errorf("page %d is not a list of free pages", id)
	}
	at, count := g.at+pageHead, uint64(g.count)
	if count == 0xffff {
		var raw [8]byte
		if _, err := p.file.ReadAt(raw[:], at); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		at, count = at+8, binary.NativeEndian.Uint64(raw[:])
	}
	if count > uint64(g.at+g.length-at)/8 {
		return fmt.Errorf("page %d lists %d free pages, and is too short for that", id, count)
	}
	raw := make([]byte, count*8)
	if _, err := p.file.ReadAt(raw, at); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	for ; len(raw) > 0; raw = raw[8:] {
		if free := binary.NativeEndian.Uint64(raw); free < 2 || free >= p.all {
			return fmt.Errorf("page %d is listed as free, and the file has %d pages", free, p.all)
		}
	}
	return nil
}

// tree checks a page and all below it.
func (p *pages) tree(id uint64, depth int) error {
	g, err := p.open(id)
	if err != nil {
		return err
	}
	if depth > deepest {
		return fmt.Errorf("page %d is more than %d pages deep", id, deepest)
	}
	return p.elements(id, g, depth)
}

// elements checks the elements of a page, or of a page inside a value of another.
func (p *pages) elements(id uint64, g page, depth int) error {
	if g.kind != branchPage && g.kind != leafPage || g.kind == branchPage && g.count == 0 {
		return fmt.Errorf("page %d is of no kind that belongs there", id)
	}
	table := make([]byte, g.count*elementSize)
	if int64(pageHead+len(table)) > g.length {
		return fmt.Errorf("page %d is too short for %d elements", id, g.count)
	}
	if _, err := p.file.ReadAt(table, g.at+pageHead); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	number := func(at int) int64 { return int64(binary.NativeEndian.Uint32(table[at:])) }
	for i := 0; i < len(table); i += elementSize {
		if g.kind == branchPage { // position and length of the key; the child page
			if int64(pageHead+i)+number(i)+number(i+4) > g.length {
				return fmt.Errorf("page %d has a key outside of it", id)
			}
			if err := p.tree(binary.NativeEndian.Uint64(table[i+8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		// flags; position and length of the key; length of the value after it
		value := int64(pageHead+i) + number(i+4) + number(i+8)
		if value+number(i+12) > g.length {
			return fmt.Errorf("page %d has a value outside of it", id)
		}
		if number(i)&bucketFlag != 0 {
			if err := p.bucket(id, g.at+value, number(i+12), depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks a bucket: its root page, or the page inside its own value.
func (p *pages) bucket(id uint64, at, length int64, depth int) error {
	var raw [bucketHead + pageHead]byte
	if length < bucketHead {
		return fmt.Errorf("page %d has a bucket of %d bytes", id, length)
	}
	if _, err := p.file.ReadAt(raw[:min(length, int64(len(raw)))], at); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if root := binary.NativeEndian.Uint64(raw[:]); root != 0 {
		return p.tree(root, depth+1)
	}
	if length < int64(len(raw)) || depth > deepest {
		return fmt.Errorf("page %d has a bucket of %d bytes", id, length)
	}
	inside := raw[bucketHead:]
	return p.elements(id, page{
		at: at + bucketHead, length: length - bucketHead,
		kind: binary.NativeEndian.Uint16(inside[8:]), count: int(binary.NativeEndian.Uint16(inside[10:])),
	}, depth+1)
}
