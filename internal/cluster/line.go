package cluster

import "tidegate.dev/tidegate"

// waiter is a call of Take that waits for its answer. Everything but done is its
// lane's to guard.
type waiter struct {
	n      int
	checks []tidegate.Check // the caller's: to be written to while it waits
	lane   *lane
	flight *flight
	watch  *watch // nil: it looks for the end of its context itself
	line   *line  // nil: it has an answer
	before *waiter
	behind *waiter

	done chan struct{} // receives when d or err is there
	d    tidegate.Decision
	err  error
}

// line is waiters in the order they came.
type line struct {
	first, last *waiter
	count       int
	copies      int // that they ask for
}

func (l *line) push(w *waiter) {
	w.line, w.before, w.behind = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.behind = w
	}
	l.last = w
	l.count++
	l.copies += w.n
}

func (l *line) remove(w *waiter) {
	if w.before == nil {
		l.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		l.last = w.before
	} else {
		w.behind.before = w.before
	}
	l.count--
	l.copies -= w.n
	w.line, w.before, w.behind = nil, nil, nil
}

// take moves w to l, as one that has its answer.
func (l *line) take(w *waiter) {
	w.line.remove(w)
	l.push(w)
	w.line = nil
}

// wake tells all that they have an answer. Whoever is told may be gone at once.
func (l *line) wake() {
	for w := l.first; w != nil; {
		behind := w.behind
		w.done <- struct{}{}
		w = behind
	}
	*l = line{}
}
