package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/durable"
)

// file is the file that keeps records on this machine. Its fields are under Board.mu.
type file struct {
	name   string    // "" means no file
	synced time.Time // when the table was last looked at, as of the last attempt to write the file
	failed bool      // the last write failed
	pruned time.Time // when ended records were last removed
}

// state is the content of a file.
type state struct {
	Format int `json:"tidegate_state"`
	// Epoch of the table, and when it was last looked at.
	Epoch   string        `json:"epoch,omitempty"`
	Synced  time.Time     `json:"synced,omitzero"`
	Records []storedState `json:"records"`
	// Journal has lines that are not in the table yet. Only a handover has them.
	Journal []string `json:"journal,omitempty"`
}

type storedState struct {
	ID      string    `json:"id"`
	Rev     int64     `json:"rev"`
	By      uint32    `json:"by"`
	Keep    time.Time `json:"keep"`
	Expires time.Time `json:"expires,omitzero"`
	Ended   bool      `json:"ended,omitempty"`
	Body    string    `json:"body"`
}

const (
	stateFormat  = 1
	maxStateFile = 256 << 20
)

// readState reads a file. One that does not exist is empty.
func readState(name string) (s state, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("read what operators have ordered: %w", err)
	case !info.Mode().IsRegular():
		return s, fmt.Errorf("read what operators have ordered: %s is not a file", name)
	case info.Size() > maxStateFile:
		return s, fmt.Errorf("read what operators have ordered: %s has %d bytes, more than this program writes", name, info.Size())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return s, fmt.Errorf("read what operators have ordered: %w", err)
	}
	err = json.Unmarshal(text, &s)
	if err == nil && s.Format != stateFormat {
		err = fmt.Errorf("its format is %d, and this program writes %d", s.Format, stateFormat)
	}
	for i := range s.Records {
		if r, e := s.Records[i].record(); err == nil && e != nil {
			err = fmt.Errorf("record %d, %.40q: %w", i+1, r.ID, e)
		}
	}
	if err != nil {
		return s, fmt.Errorf("read what operators have ordered: %s is damaged: %w; restore it from a backup, or move it away to begin without bans and overrides", name, err)
	}
	return s, nil
}

func (s *storedState) record() (*Record, error) {
	r := &Record{ID: s.ID, Rev: s.Rev, by: s.By, keep: s.Keep, Expires: s.Expires, Ended: s.Ended, Body: []byte(s.Body)}
	if s.Rev < 1 || s.Rev >= maxRev || s.Keep.IsZero() {
		return r, errors.New("it has no valid rev or keep")
	}
	return r, r.check()
}

// adopt merges the content of a file into the records, and reports whether that changed any.
func (b *Board) adopt(s state) (changed bool) {
	for i := range s.Records {
		if r, err := s.Records[i].record(); err == nil && b.mergeLocked(r) {
			changed = true
		}
	}
	if s.Synced.After(b.is.synced) {
		b.is.epoch, b.is.synced, b.file.synced = s.Epoch, s.Synced, s.Synced
	}
	return changed
}

// stateLocked returns all records as the content of a file.
func (b *Board) stateLocked() state {
	s := state{Format: stateFormat, Epoch: b.is.epoch, Synced: b.is.synced, Records: make([]storedState, 0, len(b.records))}
	for _, r := range b.records {
		s.Records = append(s.Records, storedState{
			ID: r.ID, Rev: r.Rev, By: r.by, Keep: r.keep.UTC(), Expires: r.Expires.UTC(), Ended: r.Ended, Body: string(r.Body),
		})
	}
	slices.SortFunc(s.Records, func(a, b storedState) int { return strings.Compare(a.ID, b.ID) })
	return s
}

// saveLocked writes the file, unless there is none or a successor writes it now.
func (b *Board) saveLocked() error {
	if b.file.name == "" || b.handed {
		return nil
	}
	err := writeState(b.file.name, b.stateLocked())
	switch {
	case err != nil && !b.file.failed:
		b.file.failed = true
		b.o.Log.Error("what operators have ordered cannot be written: it is lost when this process ends", "err", err)
	case err == nil && b.file.failed:
		b.file.failed = false
		b.o.Log.Info("what operators have ordered is written again", "file", b.file.name)
	}
	if err == nil {
		b.file.synced = b.is.synced
	}
	return err
}

// commitInBackgroundLocked is commitLocked for changes that no operator waits for. If the file
// cannot be written, the log says so.
func (b *Board) commitInBackgroundLocked() { _ = b.commitLocked() }

// saveSyncedLocked writes the file once an hour, so that it says when the table was last looked at,
// and every few seconds while it could not be written.
func (b *Board) saveSyncedLocked() {
	if every := time.Hour; b.is.synced.Sub(b.file.synced) >= every && !b.file.failed || b.file.failed && b.is.synced.Sub(b.file.synced) >= retrySave {
		_ = b.saveLocked()
		b.file.synced = b.is.synced
	}
}

// retrySave is the pause before the file is written again after a failure.
const retrySave = 5 * time.Second

// writeState writes a file, whole or not at all, even if the machine stops.
func writeState(name string, s state) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = writeFile(name, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write what operators have ordered: %w", err)
	}
	return nil
}

// writeFile is a variable so that tests of other things need not wait for a disk.
var writeFile = durable.WriteFile

// HandOver writes all records to a file for a successor. From then on this board refuses orders
// and writes records neither to its own file nor to the table, until Resume is called.
func (b *Board) HandOver(file string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handed = true
	s := b.stateLocked()
	s.Journal = b.lines.unwritten()
	return writeState(file, s)
}

// Resume undoes HandOver: no successor has taken over.
func (b *Board) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handed = false
	b.is.compareNow = true
}

// TakeOver reads what a predecessor wrote with HandOver, and removes it.
func (b *Board) TakeOver(file string) error {
	s, err := readState(file)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = os.Remove(file) // nobody else needs it
	b.lines.add(s.Journal...)
	if b.adopt(s) {
		b.commitInBackgroundLocked()
	}
	return nil
}
