package deferq

import (
	"container/heap"
	"slices"
	"time"
)

// line has the entries of one Line that have not ended, in order.
type line struct {
	of      Line
	items   []*item
	pending int   // number of entries being added
	bytes   int64 // of items, and of those being added
	taken   bool  // the first entry is being tried
	ready   bool  // in schedule.ready
	due     time.Time
	at      int // index in schedule.later; -1 if it is not there
}

// item is the part of an entry that is kept in memory.
type item struct {
	seq      uint64
	id       string
	line     *line // nil once it has ended
	rule     string
	size     int64
	accepted time.Time
	expires  time.Time // by this process' clock, whatever the wall clock does
	state    State
	attempts int
	next     time.Time
	reason   string
	ended    time.Time
	unsaved  *Entry // its end, until that is written
}

// schedule has the lines whose first entry may be tried, in turns, and those that wait for a time.
type schedule struct {
	ready   []*line
	later   dueLines
	changed chan struct{} // closed, and replaced, when a line is added
}

// add schedules a line that has entries and is not taken.
func (s *schedule) add(l *line, now time.Time) {
	s.remove(l)
	if l.due = l.items[0].next; l.due.After(now) {
		heap.Push(&s.later, l)
	} else {
		l.ready = true
		s.ready = append(s.ready, l)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// remove removes a line from the schedule.
func (s *schedule) remove(l *line) {
	if l.at >= 0 {
		heap.Remove(&s.later, l.at)
	}
	if l.ready {
		l.ready = false
		i := slices.Index(s.ready, l)
		s.ready = slices.Delete(s.ready, i, i+1)
	}
}

// next removes and returns the next line in turn; or it returns nil, and when a line will be due. The
// zero time means that no line waits for a time.
func (s *schedule) next(now time.Time) (*line, time.Time) {
	for len(s.later) > 0 && !s.later[0].due.After(now) {
		l := heap.Pop(&s.later).(*line)
		l.ready = true
		s.ready = append(s.ready, l)
	}
	if len(s.ready) == 0 {
		if len(s.later) == 0 {
			return nil, time.Time{}
		}
		return nil, s.later[0].due
	}
	l := s.ready[0]
	s.ready[0] = nil
	s.ready = s.ready[1:]
	l.ready = false
	return l, time.Time{}
}

// dueLines is a heap ordered by due.
type dueLines []*line

func (d dueLines) Len() int           { return len(d) }
func (d dueLines) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d dueLines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].at, d[j].at = i, j
}

func (d *dueLines) Push(x any) {
	l := x.(*line)
	l.at = len(*d)
	*d = append(*d, l)
}

func (d *dueLines) Pop() any {
	old := *d
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	l.at = -1
	return l
}
