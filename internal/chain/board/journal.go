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

// journal holds the lines that the table does not have yet; without a table, the last lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// Log adds a line to the journal of the fleet. It does not wait: the last maxUnwritten lines are
// kept here until the table has them; without a table, for good.
func (b *Board) Log(line string) error {
	if len(line) > MaxLine || strings.Contains(line, "\n") {
		return fmt.Errorf("a line of %d bytes is not one for the journal, which takes %d without line breaks", len(line), MaxLine)
	}
	b.lines.add(rand.Text() + " " + line)
	b.wakeUp()
	return nil
}

// add adds lines, each of which begins with its name.
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

// deliver writes lines to the table. If an answer is lost, the lines are sent again under the same
// names, and the table has each once.
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
			return // it is tried again at the next look
		}
		j.mu.Lock()
		for len(j.lines) > 0 && slices.Contains(some, j.lines[0]) {
			j.lines = j.lines[1:]
		}
		j.mu.Unlock()
	}
}

// journalTimeouts is how many times Options.Timeout reading the journal may take: it is many calls.
const journalTimeouts = 4

// Logged returns the last n lines of the journal, each once, and perhaps some before them. With
// a single server they are in order, the oldest first. An error means that the table, or a part
// of it, could not be read; the lines are then those that could be read and those that are
// only here.
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
