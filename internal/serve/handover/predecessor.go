package handover

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// predecessor is the process that this one replaces, as seen from here.
type predecessor struct {
	from, to *os.File
}

func newPredecessor(fd int) *predecessor { return &predecessor{openPipe(fd), openPipe(fd + 1)} }

// Await says that this process is prepared, and waits until the predecessor hands over. It returns
// the file with the counters. Without a predecessor, or if that has died meanwhile, it returns "".
func (h *Heir) Await(ctx context.Context) (snapshot string, err error) {
	p := h.predecessor
	if p == nil {
		return "", nil
	}
	if err := say(p.to, messagePrepared); err != nil {
		return "", nil // the predecessor is gone: the sockets are ours
	}
	defer context.AfterFunc(ctx, func() { _ = p.from.SetReadDeadline(time.Now()) })()
	word, rest, err := hear(bufio.NewReader(p.from))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", nil
	case word != messageYours:
		return "", fmt.Errorf("the process that started this one to replace it said %q, which this version does not understand", word)
	}
	return strconv.Unquote(rest)
}

// serving tells the predecessor that it can end.
func (h *Heir) serving() {
	if p := h.predecessor; p != nil {
		_ = say(p.to, messageServing) // if it is gone, it need not know
		p.from.Close()
		p.to.Close()
		h.predecessor = nil
	}
}

// say sends a message of the protocol.
func say(to *os.File, words ...string) error {
	_, err := fmt.Fprintln(to, strings.Join(words, " "))
	return err
}

// hear reads a message of the protocol, and its argument.
func hear(from *bufio.Reader) (word, rest string, err error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return "", "", err
	}
	word, rest, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	return word, rest, nil
}
