package board

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// paper is a table in memory: Redis does not live in virtual time. TestTable of store/redis
// holds the real one to the same.
type paper struct {
	mu        sync.Mutex
	ahead     time.Duration // its clock
	epoch     string
	version   int64
	rows      map[string]chain.Row
	questions map[string]*question
	journal   []string
}

type question struct {
	text    string
	at      time.Time
	answers []string
}

func newPaper() *paper {
	return &paper{rows: make(map[string]chain.Row), questions: make(map[string]*question)}
}

func (p *paper) now() time.Time { return time.Now().Add(p.ahead) }

// flush loses everything.
func (p *paper) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.version, p.journal = "", 0, nil
	clear(p.rows)
}

// copy is what a replica has of it.
func (p *paper) copy() (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	epoch, version, rows, journal := p.epoch, p.version, maps.Clone(p.rows), slices.Clone(p.journal)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.epoch, p.version, p.rows, p.journal = epoch, version, rows, journal
	}
}

// wire is the way of an instance to the table.
type wire struct {
	*paper
	mu    sync.Mutex
	cut   bool // nothing arrives
	lossy bool // answers are lost
	calls int
}

var errWire = errors.New("the table does not answer")

func (w *wire) set(cut, lossy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.lossy = cut, lossy
}

// call does something at the table.
func (w *wire) call(ctx context.Context, do func()) error {
	w.mu.Lock()
	cut, lossy := w.cut, w.lossy
	w.calls++
	w.mu.Unlock()
	time.Sleep(time.Millisecond)
	if !cut && ctx.Err() == nil {
		w.paper.mu.Lock()
		do()
		w.paper.mu.Unlock()
	}
	if cut || lossy {
		<-ctx.Done()
		return errWire
	}
	time.Sleep(time.Millisecond)
	return ctx.Err()
}

func (w *wire) Look(ctx context.Context, since int64) (n chain.TableNews, err error) {
	err = w.call(ctx, func() {
		n = chain.TableNews{Epoch: w.epoch, Version: w.version, Now: w.now()}
		for _, r := range w.rows {
			if r.Version > since && r.Keep.After(n.Now) {
				n.Changed = append(n.Changed, chain.RowVersion{ID: r.ID, Version: r.Version})
			}
		}
		slices.SortFunc(n.Changed, func(a, b chain.RowVersion) int { return int(a.Version - b.Version) })
		n.Changed = n.Changed[:min(len(n.Changed), chain.MaxChanged)]
		for id, q := range w.questions {
			if n.Now.Sub(q.at) < 5*time.Second {
				n.Open = append(n.Open, id)
			}
		}
	})
	return n, err
}

func (w *wire) Rows(ctx context.Context, ids []string) ([]chain.Row, error) {
	rows := make([]chain.Row, len(ids))
	if len(ids) > chain.MaxRowsAtOnce {
		return nil, errors.New("too many")
	}
	err := w.call(ctx, func() {
		for i, id := range ids {
			rows[i] = w.rows[id]
			rows[i].ID, rows[i].Version = id, 0
		}
	})
	return rows, err
}

func (w *wire) Post(ctx context.Context, epoch string, rows []chain.Row) (there []chain.Row, inForce string, err error) {
	if len(rows) > chain.MaxRowsAtOnce {
		return nil, "", errors.New("too many")
	}
	there = make([]chain.Row, len(rows))
	full := false
	err = w.call(ctx, func() {
		if w.epoch == "" {
			w.epoch = epoch
		}
		inForce = w.epoch
		for i, r := range rows {
			old, known := w.rows[r.ID]
			switch {
			case known && !r.Newer(&old):
				there[i] = old
			case !r.Keep.After(w.now()):
				there[i] = chain.Row{ID: r.ID}
			case !known && len(w.rows) >= chain.MaxRows:
				full = true
			default:
				w.version = max(w.version+1, w.now().UnixMicro())
				r.Version = w.version
				w.rows[r.ID], there[i] = r, r
			}
		}
	})
	switch {
	case err != nil:
		return nil, "", err
	case full:
		return there, inForce, chain.ErrTableFull
	}
	return there, inForce, nil
}

func (w *wire) Ask(ctx context.Context, id, text string) error {
	return w.call(ctx, func() { w.questions[id] = &question{text: text, at: w.now()} })
}

func (w *wire) Question(ctx context.Context, id string) (text string, err error) {
	err = w.call(ctx, func() {
		if q := w.questions[id]; q != nil {
			text = q.text
		}
	})
	return text, err
}

func (w *wire) Answer(ctx context.Context, id, text string) error {
	return w.call(ctx, func() { w.questions[id].answers = append(w.questions[id].answers, text) })
}

func (w *wire) Answers(ctx context.Context, id string, from int) (all []string, err error) {
	err = w.call(ctx, func() {
		all = slices.Clone(w.questions[id].answers[from:])
		all = all[:min(len(all), 8)]
	})
	return all, err
}

func (w *wire) Append(ctx context.Context, lines []string) error {
	return w.call(ctx, func() {
		for _, line := range lines {
			if !slices.Contains(w.journal, line) {
				w.journal = append(w.journal, line)
			}
		}
	})
}

func (w *wire) Journal(ctx context.Context, n int) (all []string, err error) {
	err = w.call(ctx, func() { all = slices.Clone(w.journal[max(0, len(w.journal)-n):]) })
	return all, err
}
