package deferq

import (
	"context"
	"log/slog"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// writer makes all changes of the file, as many as there are in one transaction: the disk is
// waited for once for all of them.
type writer struct {
	db    *bolt.DB
	purge func()
	log   *slog.Logger

	mu       sync.Mutex
	asked    []change // somebody waits for these
	promised []change // these are made sooner or later
	writing  int      // promised ones that are being made
	failed   error    // why the promised ones are not made yet
	idle     sync.Cond

	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

// change is one of the file.
type change struct {
	apply func(*bolt.Tx) error
	told  func(error)  // before done; nil means nobody
	done  chan<- error // nil means nobody waits
	made  func()       // nil means nobody
}

// writeAgain is how long to wait after the disk has refused.
const writeAgain = time.Second

// purgeEvery is how often old entries are looked for.
const purgeEvery = time.Minute

func (w *writer) start(db *bolt.DB, purge func(), log *slog.Logger) {
	w.db, w.purge, w.log = db, purge, log
	w.idle.L = &w.mu
	w.wake, w.stop, w.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.run()
}

// push makes a change with others, or fails; told is called before the error is sent.
func (w *writer) push(apply func(*bolt.Tx) error, told func(error)) <-chan error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.asked = append(w.asked, change{apply: apply, told: told, done: done})
	w.mu.Unlock()
	w.nudge()
	return done
}

// later makes a change when the disk takes it; made is called then, unless it is nil.
func (w *writer) later(apply func(*bolt.Tx) error, made func()) {
	w.mu.Lock()
	w.promised = append(w.promised, change{apply: apply, made: made})
	w.mu.Unlock()
	w.nudge()
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *writer) run() {
	defer close(w.ended)
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		var again <-chan time.Time
		if w.stuck() {
			again = time.After(writeAgain)
		}
		select {
		case <-w.wake:
		case <-again:
		case <-tick.C:
			w.purge()
		case <-w.stop:
			w.write()
			return
		}
		w.write()
	}
}

// stuck reports whether promised changes have failed.
func (w *writer) stuck() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// write makes all changes there are. If the disk refuses, those that somebody waits for fail,
// and the others are tried alone.
func (w *writer) write() {
	w.mu.Lock()
	asked, promised := w.asked, w.promised
	w.asked, w.promised, w.writing = nil, nil, len(promised)
	w.mu.Unlock()
	err := w.commit(promised, asked)
	for _, c := range asked {
		c.told(err)
		c.done <- err
	}
	if err != nil && len(asked) > 0 && len(promised) > 0 {
		err = w.commit(promised, nil)
	}
	if err == nil {
		for _, c := range promised {
			if c.made != nil {
				c.made()
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.failed
	switch {
	case err != nil && len(promised) > 0:
		w.promised, w.failed = append(promised, w.promised...), err
	case len(promised) > 0:
		w.failed = nil
	}
	if w.failed != nil && was == nil {
		w.log.Error("what became of deferred requests cannot be recorded; those may be sent again after a restart", "err", w.failed)
	}
	w.writing = 0
	w.idle.Broadcast()
}

func (w *writer) commit(promised, asked []change) error {
	if len(promised)+len(asked) == 0 {
		return nil
	}
	return safely(func() error {
		return w.db.Update(func(tx *bolt.Tx) error {
			for _, all := range [][]change{promised, asked} {
				for _, c := range all {
					if err := c.apply(tx); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// unwritten is how many promised changes there are.
func (w *writer) unwritten() int64 {
	n, _ := w.state()
	return n
}

func (w *writer) state() (unwritten int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.promised) + w.writing), w.failed
}

// flushed returns when no changes are promised, or the writer has ended; or with the error of ctx.
func (w *writer) flushed(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.idle.Broadcast()
	})()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.promised)+w.writing > 0 {
		select {
		case <-w.stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		w.idle.Wait()
	}
	return nil
}

// close writes what there is, and ends.
func (w *writer) close() {
	close(w.stop)
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.asked {
		c.told(ErrClosed)
		c.done <- ErrClosed
	}
	w.asked = nil
	w.idle.Broadcast()
}
