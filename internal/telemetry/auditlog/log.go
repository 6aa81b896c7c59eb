package auditlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of [Open].
type Options struct {
	// File that lines are appended to; "" keeps only the last thousand, in memory.
	File string
	// Node is the name of this instance.
	Node string
	// Share passes a line to the log of the fleet without waiting for it; nil means that there is
	// none.
	Share func(line string) error
	// Shared returns the last n lines of the fleet, in any order. If it returns an error, lines may
	// be missing.
	Shared func(ctx context.Context, n int) ([]string, error)
	// Trouble is called when the file cannot be written, and with nil when it can again.
	Trouble func(error)

	maxSize int64            // of a file; 0 means 16 MiB
	kept    int              // files that were set aside; 0 means 10
	now     func() time.Time // nil means time.Now
}

const (
	maxSize   = 16 << 20
	keptFiles = 10
	inMemory  = 1000
)

// Log is an open audit log. Use [Open].
type Log struct {
	o Options

	mu     sync.Mutex
	file   *file   // nil means there is none
	last   []Entry // the newest at the end; under mu
	broken bool    // the last line could not be written; under mu
}

// Open opens the log. If the file does not exist, it is created, readable only by its owner.
func Open(o Options) (*Log, error) {
	if o.maxSize == 0 {
		o.maxSize = maxSize
	}
	if o.kept == 0 {
		o.kept = keptFiles
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	l := &Log{o: o}
	if o.File != "" {
		f, err := openFile(o.File, o.maxSize, o.kept, o.now)
		if err != nil {
			return nil, fmt.Errorf("open the audit log: %w", err)
		}
		l.file = f
	}
	return l, nil
}

// Append adds an entry, and sets its ID, At and Node if they are empty. When it returns, the line
// is on disk, unless there is an error; even then the entry is kept in memory and shared.
func (l *Log) Append(e Entry) error {
	if e.ID == "" {
		e.ID = rand.Text()
	}
	if e.At.IsZero() {
		e.At = l.o.now().UTC()
	}
	if e.Node == "" {
		e.Node = l.o.Node
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	err = l.write(e, line)
	if l.o.Share != nil {
		if shareErr := l.o.Share(string(line)); shareErr != nil {
			err = errors.Join(err, fmt.Errorf("share a line of the audit log: %w", shareErr))
		}
	}
	return err
}

// write appends the line to the file, and the entry to those in memory.
func (l *Log) write(e Entry, line []byte) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, e)
	if over := len(l.last) - inMemory; over > 0 {
		l.last = slices.Delete(l.last, 0, over)
	}
	if l.file == nil {
		return nil
	}
	if err = l.file.append(line); err != nil {
		err = fmt.Errorf("write the audit log: %w", err)
	}
	if broken := err != nil; broken != l.broken {
		l.broken = broken
		l.o.Trouble(err)
	}
	return err
}

// Last returns up to n entries, newest first. incomplete says what may be missing.
func (l *Log) Last(ctx context.Context, n int) (entries []Entry, incomplete string, err error) {
	l.mu.Lock()
	entries = slices.Clone(l.last)
	f := l.file
	l.mu.Unlock()
	if f != nil {
		lines, err := f.tail(n)
		if err != nil {
			return nil, "", fmt.Errorf("read the audit log: %w", err)
		}
		entries = append(entries, parse(lines)...)
	}
	if l.o.Shared != nil {
		lines, err := l.o.Shared(ctx, n)
		if err != nil {
			incomplete = "the log of the fleet cannot be read, so this is what this instance did: " + err.Error()
		}
		for _, line := range lines {
			entries = append(entries, parse([][]byte{[]byte(line)})...)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.ID == b.ID })
	return entries[:min(n, len(entries))], incomplete, nil
}

// parse skips incomplete lines, such as a power failure may leave.
func parse(lines [][]byte) []Entry {
	all := make([]Entry, 0, len(lines))
	for _, line := range lines {
		var e Entry
		d := json.NewDecoder(bytes.NewReader(line))
		if d.Decode(&e) == nil && e.ID != "" {
			all = append(all, e)
		}
	}
	return all
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.close()
}
