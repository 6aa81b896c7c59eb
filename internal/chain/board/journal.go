package board

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tidegate.dev/tidegate/internal/chain"
)

// Bounds of the journal.
const (
	MaxLine      = chain.MaxLine - 64
	maxUnwritten = 1000 // lines that the table does not have
)

// journal is lines that the table does not have yet, or that nobody else does.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// Log adds a line to the journal of the fleet. It does not wait: while the table cannot be
// reached, lines are kept here, the last thousand. Without a table it keeps those, too.
func (b *Board) Log(line string) error {
	if len(line) > MaxLine || strings.Contains(line, "\n") {
		return fmt.Errorf("a line of %d bytes is not one for the journal, which takes %d without line breaks", len(line), MaxLine)
	}
	b.lines.add(rand.Text() + " " + line)
	b.wakeUp()
	return nil
}

// add adds lines with their names.
func (j *journal) add(lines ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, lines...)
	if more := len(j.lines) - maxUnwritten; more > 0 {
		j.lines = slices.Delete(j.lines, 0, more)
	}
}

func (j *journal) unwritten() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// deliver writes lines to the table. One whose answer was lost is written again, under the
// same name.
func (b *Board) deliver(ctx context.Context) {
	j := &b.lines
	for {
		j.mu.Lock()
		some := slices.Clone(j.lines[:min(len(j.lines), chain.MaxLinesAtOnce)])
		j.mu.Unlock()
		if len(some) == 0 {
			return
		}
		limited, cancel := context.WithTimeout(ctx, b.o.Timeout)
		err := b.table.Append(limited, some)
		cancel()
		if err != nil {
			return // at the next look
		}
		j.mu.Lock()
		for len(j.lines) > 0 && slices.Contains(some, j.lines[0]) {
			j.lines = j.lines[1:]
		}
		j.mu.Unlock()
	}
}

// journalTimeouts is how many timeouts reading the journal has: it takes many calls.
const journalTimeouts = 4

// Logged returns the last n lines of the journal, each once, and perhaps some before them. On
// one server they are in order, the oldest first. With lines and an error, the table cannot be
// read, or not all of it, and the lines are those that could be and those that it has not got
// yet.
func (b *Board) Logged(ctx context.Context, n int) ([]string, error) {
	var all []string
	var err error
	if b.table != nil {
		ctx, cancel := context.WithTimeout(ctx, journalTimeouts*b.o.Timeout)
		defer cancel()
		all, err = b.table.Journal(ctx, min(n, chain.MaxJournal))
	}
	all = append(all, b.lines.unwritten()...)
	seen := make(map[string]bool, len(all))
	lines := make([]string, 0, len(all))
	for _, line := range all {
		name, text, ok := strings.Cut(line, " ")
		if ok && !seen[name] {
			seen[name] = true
			lines = append(lines, text)
		}
	}
	return lines, err
}
