package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/durable"
	"tidegate.dev/tidegate/rules/source"
)

// maxFile is the maximum length of the file.
const maxFile = 64 << 20

// File is a [Storage] in a file or, if the name is "", in memory.
type File struct {
	name string
	mu   sync.Mutex
	kept // under mu; empty for a history in a file, which is read whenever it is needed
}

// NewFile returns a Storage in the file called name, which need not exist.
func NewFile(name string) *File { return &File{name: name} }

// OnDisk reports whether the history survives the process.
func (f *File) OnDisk() bool { return f.name != "" }

// Put implements [Storage].
func (f *File) Put(_ context.Context, b *source.Bundle) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := f.readLocked()
	if err != nil {
		return err
	}
	if len(k.Sets) > 0 && k.Sets[0].Hash == b.Hash {
		return nil
	}
	if err := k.add(b); err != nil {
		return err
	}
	return f.writeLocked(k)
}

// History implements [Storage].
func (f *File) History(context.Context) ([]source.Edition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := f.readLocked()
	if err != nil {
		return nil, err
	}
	var all []source.Edition
	for i := range k.Sets {
		all = append(all, k.Sets[i].edition())
	}
	return all, nil
}

// Get implements [Storage].
func (f *File) Get(_ context.Context, hash string) (*source.Bundle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := f.readLocked()
	if err != nil {
		return nil, err
	}
	for _, s := range k.Sets {
		if Names(hash, s.Hash) {
			return k.bundle(&s)
		}
	}
	return nil, source.ErrNoRevision
}

// readLocked returns the content. A file that is not a valid history is renamed to end in .bad.
func (f *File) readLocked() (*kept, error) {
	if f.name == "" {
		return &f.kept, nil
	}
	k := new(kept)
	text, err := bounded.ReadFile(f.name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return k, nil
	case err != nil:
		return nil, fmt.Errorf("read the history of rules: %w", err)
	}
	if err := json.Unmarshal(text, k); err != nil {
		if os.Rename(f.name, f.name+".bad") == nil {
			return new(kept), nil
		}
		return nil, fmt.Errorf("read the history of rules: %s: %w", f.name, err)
	}
	return k, nil
}

func (f *File) writeLocked(k *kept) error {
	if f.name == "" {
		f.kept = *k
		return nil
	}
	return write(f.name, k)
}

// HandOver writes everything to a file called name, for a successor.
func (f *File) HandOver(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := f.readLocked()
	if err != nil {
		return err
	}
	return write(name, k)
}

// TakeOver takes over the history that a predecessor has written to the file called name.
func (f *File) TakeOver(name string) error {
	from := NewFile(name)
	k, err := from.readLocked()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writeLocked(k)
}

func write(name string, k *kept) error {
	text, err := json.Marshal(k)
	if err == nil {
		err = durable.WriteFile(name, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the history of rules: %w", err)
	}
	return nil
}
