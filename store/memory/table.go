package memory

import (
	"iter"
	"sync"
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
)

// table holds the keys of one counter identity. It is an extendible hash: the upper bits of a
// tag choose a segment from the directory. A segment grows chunk by chunk and, at its largest,
// splits in two; an empty segment is joined with its sibling. Only one segment is rebuilt at a
// time, and the load stays between three fifths and three quarters. An empty table holds no
// page.
type table struct {
	id             string
	kind           kind
	maxChunks      int
	salt           uint64
	dir            atomic.Pointer[directory]
	lastLimit      atomic.Pointer[compiledLimit] // compiled last: sweeps go by its law
	keepsExhausted atomic.Bool                   // that limit never drops exhausted keys
	dropped        atomic.Bool                   // the store has forgotten this table: compile again

	mu sync.Mutex // guards changes of dir; taken after a segment's

	shedBackoff backoff           // under Store.mu: nothing could be shed
	limits      []*tidegate.Limit // under Store.mu: compiled for it
	index       int               // under Store.mu: in Store.tables

	widest                      atomic.Int64 // capacity of the widest limit counted here
	longest                     atomic.Int64 // ticks that the slowest bucket counted here takes to drain
	bytes, keys                 atomic.Int64
	evicted, forgotten, refused atomic.Int64
}

type directory struct {
	shift uint // 64 - depth
	segs  []atomic.Pointer[segment]
}

// segment is an open-addressed array of slots in chunks. Readers take no lock:
// one that misses a key because it is just being moved comes to insert it, takes
// the lock, and finds it.
type segment struct {
	slots   atomic.Uint32 // in use, a multiple of chunkSlots
	records *records      // nil means states are in the slots; near slots, as touch reads both
	chunks  [maxChunks]atomic.Pointer[chunk]

	mu          sync.Mutex
	pages       [maxChunks]uint32 // under mu: the numbers of the chunks
	depth       uint              // under mu: how many upper bits of the tag all keys share
	prefix      uint64            // under mu: those bits
	used        int               // under mu: slots that are not vacant
	shedBackoff backoff           // under mu: nothing could be dropped
}

const (
	maxChunks    = 16
	recordChunks = 8 // in a segment with records, which are moved when it is rebuilt
	segmentBytes = maxChunks*12 + 80
	tableBytes   = 512 // of a table and its compiled limit, roughly
)

// maxKeys returns how many keys a segment of that many slots may hold.
func maxKeys(slots int) int { return slots * 3 / 4 }

func newTable(id string, k kind, salt uint64, b *budget) *table {
	t := &table{id: id, kind: k, salt: salt, maxChunks: maxChunks}
	if k.inRecord() {
		t.maxChunks = recordChunks
	}
	t.dir.Store(newDirectory(t.newSegment(b)))
	return t
}

func newDirectory(g *segment) *directory {
	d := &directory{shift: 64, segs: make([]atomic.Pointer[segment], 1)}
	d.segs[0].Store(g)
	return d
}

func (t *table) newSegment(b *budget) *segment {
	g := new(segment)
	if t.kind.inRecord() {
		g.records = &records{table: t, budget: b}
	}
	return g
}

// segmentBytes returns what a segment of t takes besides its pages.
func (t *table) segmentBytes() int64 {
	if t.kind.inRecord() {
		return segmentBytes + recordsBytes
	}
	return segmentBytes
}

// noteLimit notes the capacity of a limit that is counted here and, for a bucket, how many ticks it
// takes to drain.
func (t *table) noteLimit(capacity, ticks int64) {
	raise(&t.widest, capacity)
	raise(&t.longest, ticks)
}

func raise(to *atomic.Int64, n int64) {
	for {
		was := to.Load()
		if n <= was || to.CompareAndSwap(was, n) {
			return
		}
	}
}

func (t *table) segment(k keyHash) *segment {
	d := t.dir.Load()
	return d.segs[k.tag>>d.shift].Load()
}

// find returns the slot of k, or nil when it is not there or being moved.
func (t *table) find(k keyHash) *slot {
	d := t.dir.Load()
	return d.segs[k.tag>>d.shift].Load().find(k)
}

// touch starts fetching the memory in which k will be looked for.
func (t *table) touch(k keyHash) {
	d := t.dir.Load()
	g := d.segs[k.tag>>d.shift].Load()
	i := home(k.tag, uint64(g.slots.Load()))
	if c := g.chunks[i/chunkSlots%maxChunks].Load(); c != nil {
		prefetch(unsafe.Pointer(&c[i%chunkSlots]))
	}
	if g.records != nil { // a key with few events mostly needs a larger record
		prefetch(unsafe.Pointer(g.records))
	}
}

// findAndRead is find and read in one pass: it returns the state of k as well, and
// the word that vouches for it. A busy slot counts as missing.
func (t *table) findAndRead(k keyHash) (s *slot, c cell, word uint64) {
	d := t.dir.Load()
	g := d.segs[k.tag>>d.shift].Load()
	n := uint64(g.slots.Load())
	i := home(k.tag, n)
	for range n {
		chunk := g.chunks[i/chunkSlots%maxChunks].Load()
		if chunk == nil {
			return nil, c, 0
		}
		s = &chunk[i%chunkSlots]
		word = s.word.Load()
		tag := s.tag.Load()
		if tag == k.tag {
			if meta := s.meta.Load(); meta&^slowMask == k.extra && word&busyBit == 0 {
				return s, cell{meta & slowMask, word & fastMask}, word
			}
		}
		if tag == 0 {
			return nil, c, 0
		}
		if i++; i >= n {
			i = 0
		}
	}
	return nil, c, 0
}

// holds reports whether k is in the table. It waits for a rebuild that may hide the key.
func (t *table) holds(k keyHash) bool {
	for {
		g := t.segment(k)
		g.mu.Lock()
		same, found := t.segment(k) == g, g.find(k) != nil
		g.mu.Unlock()
		if same {
			return found
		}
	}
}

func (g *segment) find(k keyHash) *slot {
	n := uint64(g.slots.Load())
	i := home(k.tag, n)
	for range n { // it may have grown since, and have no vacancy among the first n
		c := g.chunks[i/chunkSlots%maxChunks].Load()
		if c == nil {
			return nil
		}
		s := &c[i%chunkSlots]
		tag := s.tag.Load()
		if tag == k.tag && s.meta.Load()&^slowMask == k.extra {
			return s
		}
		if tag == 0 {
			return nil
		}
		if i++; i >= n {
			i = 0
		}
	}
	return nil
}

// home returns where among n slots a tag belongs.
func home(tag, n uint64) uint64 { return tag & (1<<32 - 1) * n >> 32 }

// vacant returns the slot for k. The caller holds mu, k is not there, and there is
// room.
func (g *segment) vacant(k keyHash) *slot {
	n := uint64(g.slots.Load())
	i := home(k.tag, n)
	for {
		s := &g.chunks[i/chunkSlots].Load()[i%chunkSlots]
		if s.tag.Load() == 0 {
			return s
		}
		if i++; i == n {
			i = 0
		}
	}
}

// segments visits every segment under its lock, in the order of their tags: splits
// before or behind it make no difference.
func (t *table) segments() iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		var at uint64 // the first tag not yet visited
		for {
			g := t.segment(keyHash{tag: at})
			g.mu.Lock()
			if t.segment(keyHash{tag: at}) != g {
				g.mu.Unlock()
				continue
			}
			more, depth, prefix := yield(g), g.depth, g.prefix
			g.mu.Unlock()
			if !more || prefix+1 == 1<<depth {
				return
			}
			at = (prefix + 1) << (64 - depth)
		}
	}
}

// split divides g's keys between g and sibling by one more bit of their tags. The
// caller holds the locks of both, and all slots of g are vacant.
func (t *table) split(g, sibling *segment, b *budget) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dir.Load()
	if 64-d.shift == g.depth {
		wide := &directory{shift: d.shift - 1, segs: make([]atomic.Pointer[segment], 2*len(d.segs))}
		for i := range d.segs {
			seg := d.segs[i].Load()
			wide.segs[2*i].Store(seg)
			wide.segs[2*i+1].Store(seg)
		}
		b.giveBack(t, -int64(8*len(d.segs)))
		d = wide
	}
	g.depth++
	g.prefix <<= 1
	sibling.depth, sibling.prefix = g.depth, g.prefix|1
	d.point(sibling)
	t.dir.Store(d)
}

// point sets the entries of d for all tags with the prefix of g to g.
func (d *directory) point(g *segment) {
	below := 64 - d.shift - g.depth
	for i := g.prefix << below; i < (g.prefix+1)<<below; i++ {
		d.segs[i].Store(g)
	}
}

// join makes g hold the keys of its sibling too, if that is empty and as large a part
// of the table. The caller holds g's lock.
func (t *table) join(g *segment, b *budget) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dir.Load()
	if g.depth == 0 {
		return false
	}
	sibling := d.segs[(g.prefix^1)<<(64-d.shift-g.depth)].Load()
	if !sibling.mu.TryLock() { // a segment's lock comes before the table's
		return false
	}
	defer sibling.mu.Unlock()
	if sibling.depth != g.depth || sibling.slots.Load() > 0 {
		return false
	}
	g.depth--
	g.prefix >>= 1
	if g.depth == 0 {
		b.giveBack(t, int64(8*(len(d.segs)-1)))
		t.dir.Store(newDirectory(g))
	} else {
		d.point(g)
	}
	b.giveBack(t, t.segmentBytes())
	return true
}
