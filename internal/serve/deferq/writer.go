package deferq

import (
	"context"
	"log/slog"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// writer makes all changes of the file, as many as possible in one transaction, so that they share
// one sync of the disk.
type writer struct {
	db    *bolt.DB
	purge func()
	log   *slog.Logger

	mu       sync.Mutex
	asked    []change // callers wait for these
	promised []change // nobody waits for these
	writing  int      // number of promised ones being written
	failed   error    // why the promised ones are not written yet
	idle     sync.Cond

	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

// change is a change of the file.
type change struct {
	apply func(*bolt.Tx) error
	told  func(error)  // called with the result before it is sent to done; nil if nobody waits
	done  chan<- error // nil if nobody waits
	made  func()       // called after a promised change is written; may be nil
}

// writeAgain is how long to wait after a failed write.
const writeAgain = time.Second

// purgeEvery is how often old entries are purged.
const purgeEvery = time.Minute

func (w *writer) start(db *bolt.DB, purge func(), log *slog.Logger) {
	w.db, w.purge, w.log = db, purge, log
	w.idle.L = &w.mu
	w.wake, w.stop, w.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.run()
}

// push makes the writer write a change, together with others. The channel gets the result, after told
// was called with it; a change that fails is not tried again.
func (w *writer) push(apply func(*bolt.Tx) error, told func(error)) <-chan error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.asked = append(w.asked, change{apply: apply, told: told, done: done})
	w.mu.Unlock()
	w.nudge()
	return done
}

// later makes the writer write a change, as often as it takes, and then call made unless that is nil.
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

// stuck reports whether the last write of promised changes has failed.
func (w *writer) stuck() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// write writes all pending changes. If that fails, those with waiting callers fail, and the
// promised ones are tried alone.
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

// unwritten returns how many promised changes are not written.
func (w *writer) unwritten() int64 {
	n, _ := w.state()
	return n
}

func (w *writer) state() (unwritten int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.promised) + w.writing), w.failed
}

// flushed returns when there are no promised changes, when the writer has ended, or with the error
// of ctx.
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

// close writes the pending changes, and ends.
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
