// Package screen takes over a terminal for a live view: one picture at a time that fills the
// window, keys that are read without Enter, and everything as it was before at the end. It
// draws text and knows no windows, menus or mouse.
//
// Start with [Open].
package screen

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// ErrNone is returned by Open where there is no terminal to take over.
var ErrNone = errors.New("this is not a terminal that can be taken over")

// What is written to the terminal: sequences that every terminal since the VT220 knows.
const (
	begin = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another page, no cursor, long lines are cut
	end   = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	rest  = "\x1b[K" // clears the rest of the line
	below = "\x1b[J" // clears what is below
)

// usualRows is the height of a terminal that does not say.
const usualRows = 24

// Screen is a terminal that was taken over. Use [Open]. Its methods may be called by many
// goroutines at once.
type Screen struct {
	out  *os.File
	mode func() error // gives the terminal its mode back
	rows func() int   // of the window now; 0 if it does not say
	stop func()       // ends hearing of resizes

	mu      sync.Mutex
	picture string // shown last; under mu
	closed  bool   // under mu
}

// Open takes over the terminal that in and out are. quit is called, perhaps more than once, when
// somebody types q or Ctrl-C; other keys do nothing. Close must be called before the process ends.
func Open(in, out *os.File, quit func()) (*Screen, error) {
	mode, err := keysAtOnce(in)
	if err != nil {
		return nil, err
	}
	s := &Screen{out: out, mode: mode, rows: func() int { return rowsOf(out) }}
	s.stop = onResize(s.redraw)
	s.write(begin)
	go read(in, quit)
	return s, nil
}

// read reads keys until the terminal is gone. It outlives Close, as a read cannot be given up:
// a process that goes on reading its input must not open a Screen.
func read(in *os.File, quit func()) {
	const ctrlC = 3
	key := make([]byte, 1)
	for {
		n, err := in.Read(key)
		if err != nil {
			return
		}
		if n == 1 && (key[0] == 'q' || key[0] == 'Q' || key[0] == ctrlC) {
			quit()
		}
	}
}

// Show draws a picture in place of the one before. Lines that are too long are cut, and so are
// those for which the window has no room; it is told how many.
func (s *Screen) Show(picture string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture = picture
	s.draw()
}

func (s *Screen) redraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw()
}

// draw draws the picture; mu is held.
func (s *Screen) draw() {
	if s.closed {
		return
	}
	rows := s.rows()
	if rows <= 0 {
		rows = usualRows
	}
	s.write(home + strings.Join(fit(s.picture, rows), rest+"\r\n") + rest + below)
}

// fit returns the lines of a picture that rows have room for.
func fit(picture string, rows int) []string {
	lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
	if len(lines) <= rows {
		return lines
	}
	kept := max(rows-1, 0)
	return append(lines[:kept:kept], fmt.Sprintf("… %d more lines", len(lines)-kept))
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stop()
	s.write(end)
	return s.mode()
}

// write writes to the terminal. If that fails, nobody looks at it any more.
func (s *Screen) write(text string) { _, _ = s.out.WriteString(text) }
