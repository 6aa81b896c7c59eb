//go:build linux || darwin

package screen

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// keysAtOnce has a terminal hand over each key when it is typed, Ctrl-C like any other, and show
// none of them. It returns what gives it its mode back.
func keysAtOnce(f *os.File) (back func() error, err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setMode, &now); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return func() error { return unix.IoctlSetTermios(fd, setMode, was) }, nil
}

// rowsOf returns the height of a terminal, 0 if it does not say.
func rowsOf(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// onResize calls f whenever the window has another size, until stop is called.
func onResize(f func()) (stop func()) {
	resized, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(resized, unix.SIGWINCH)
	go func() {
		for {
			select {
			case <-resized:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(resized)
		close(done)
	}
}
