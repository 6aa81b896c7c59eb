package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/serve/history"
	"tidegate.dev/tidegate/rules/source"
)

// ofHistory is the suffix of the file with the history of the rules, next to the file with the
// counters.
const ofHistory = ".history"

// past is the history of the rules in force; it is empty if the rules cannot change.
type past struct {
	*history.History
	file *history.File // where it is kept, if not in Redis
	log  *slog.Logger

	mu      sync.Mutex
	from    *source.Watcher           // nil before the rules are loaded; under mu
	written map[string]source.Edition // layers on disk as an operator last wrote them, by name; under mu
}

// openHistory opens the history. Nothing is written before this process owns the counters.
func (s *server) openHistory() {
	if len(s.config.Rules) == 0 {
		return
	}
	storage := s.sharedHistory()
	if storage == nil {
		name := ""
		if kept := s.kept(); kept != "" {
			name = kept + ofHistory
		}
		s.past.file = history.NewFile(name)
		storage = s.past.file
	}
	s.past.log, s.past.History = s.log, history.New(storage, s.log)
	s.past.Pause()
}

// sharedHistory returns the Storage of the fleet's history; nil if there is none.
func (s *server) sharedHistory() history.Storage {
	if s.shared == nil {
		return nil
	}
	shelf, ok := chain.ShelfOf(s.shared.Store, history.ShelfName)
	if !ok {
		return nil
	}
	return history.NewShared(shelf)
}

// follow starts to add the rules in force to the history.
func (p *past) follow(w *source.Watcher) {
	p.mu.Lock()
	p.from = w
	p.mu.Unlock()
	p.note()
}

// credit records who is about to write the files of a layer, and why: files themselves do not say.
func (p *past) credit(layer string, b *source.Bundle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil {
		p.written = make(map[string]source.Edition)
	}
	p.written[layer] = source.Edition{Hash: b.Sum(), Author: b.Author, Reason: b.Reason}
}

// note adds the rules in force to the history.
func (p *past) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.from == nil || p.History == nil {
		return // follow will add them
	}
	st := p.from.Status()
	if st.None {
		return
	}
	bundles, err := p.from.Bundles()
	if err != nil {
		p.log.Warn("the files of the rules in force cannot be kept in the history", "err", err)
	}
	for i := range st.Layers {
		l := &st.Layers[i]
		if by, ok := p.written[l.Name]; ok && by.Hash == l.Hash {
			l.Author, l.Reason = by.Author, by.Reason
			delete(p.written, l.Name) // later changes are by others
		}
	}
	p.Note(joinedBundle(bundles, &st))
}

// joinedBundle returns all files in force as one bundle. Several layers get a folder each.
func joinedBundle(layers []*source.Bundle, st *source.Status) *source.Bundle {
	b := &source.Bundle{Edition: source.Edition{Hash: st.Hash, At: st.LoadedAt}}
	var revisions []string
	last := -1 // the layer that was put in force last, of those that name an author
	for i := range st.Layers {
		l := &st.Layers[i]
		revisions = append(revisions, cmp.Or(l.Revision, shownRevision(l.Hash)))
		if l.Author+l.Reason != "" && (last < 0 || l.Since.After(st.Layers[last].Since)) {
			last = i
		}
	}
	if last >= 0 {
		b.Author, b.Reason = st.Layers[last].Author, st.Layers[last].Reason
	}
	b.Revision = strings.Join(revisions, " + ")
	if len(layers) == 1 {
		b.Main, b.Over, b.Files = layers[0].Main, layers[0].Over, layers[0].Files
		return b
	}
	b.Files = make(map[string][]byte)
	var mains []string
	for i, l := range layers {
		folder := fmt.Sprintf("layer%d/", i+1)
		for name, text := range l.Files {
			b.Files[folder+name] = text
		}
		for _, main := range l.Mains() {
			mains = append(mains, folder+main)
		}
	}
	if len(mains) > 0 {
		b.Main, b.Over = mains[0], mains[1:]
	}
	return b
}

// takeOver continues the history of a predecessor, or of the previous run.
func (p *past) takeOver(handed string) error {
	if p.History == nil {
		return nil
	}
	defer p.Resume()
	if p.file == nil || handed == "" {
		return nil
	}
	if p.file.OnDisk() {
		return nil // it is the same file
	}
	return p.file.TakeOver(handed + ofHistory)
}

// handOver writes the history for a successor, unless that can read it elsewhere.
func (p *past) handOver(file string) error {
	if p.History == nil {
		return nil
	}
	p.Pause()
	if p.file == nil || p.file.OnDisk() {
		return nil
	}
	return p.file.HandOver(file + ofHistory)
}

func (p *past) close() {
	if p.History != nil {
		p.Close()
	}
}
