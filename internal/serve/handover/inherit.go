package handover

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Heir is what came with this process: sockets, and perhaps a predecessor that
// waits for it. Use [Inherit].
type Heir struct {
	sockets     []socket
	held        map[string]bool // names of sockets that systemd holds, too
	predecessor *predecessor    // nil means it follows nobody
	left        string          // a folder; "" means none
	sockFiles   []sockFile      // of the predecessor
}

type socket struct {
	name     string
	listener net.Listener
}

// Inherit takes what the environment says was passed on, and removes it from
// there, so that no program started later takes it for its own. To have inherited
// nothing is no error.
func Inherit() (*Heir, error) { return inherit(firstFD) }

func inherit(first int) (*Heir, error) {
	fds, pid, names, heir, held, left := os.Getenv(envFDs), os.Getenv(envPID), os.Getenv(envNames), os.Getenv(envHeir), os.Getenv(envHeld), os.Getenv(envLeft)
	for _, name := range []string{envFDs, envPID, envNames, envHeir, envHeld, envLeft} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if fds == "" || heir == "" && pid != strconv.Itoa(os.Getpid()) {
		return &Heir{}, nil
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > 100 {
		return nil, fmt.Errorf("%s=%s is not a valid number of sockets", envFDs, fds)
	}
	h := &Heir{held: make(map[string]bool)}
	for i := range n {
		s, err := inheritSocket(first+i, nameOf(names, i))
		if err != nil {
			h.Close()
			return nil, err
		}
		h.sockets = append(h.sockets, s)
		if isHeld(s.name, heir, held) {
			h.held[s.name] = true
		}
	}
	if heir != "" {
		h.predecessor, h.left = newPredecessor(first+n), left
	}
	return h, nil
}

// nameOf is the name of a socket, "" when it has none.
func nameOf(names string, i int) string {
	all := strings.Split(names, ":")
	if i >= len(all) || all[i] == "unknown" || strings.HasSuffix(all[i], ".socket") {
		return "" // systemd's own words for a socket that was not given a name
	}
	return all[i]
}

func inheritSocket(fd int, name string) (socket, error) {
	f := os.NewFile(uintptr(fd), name)
	if f == nil {
		return socket{}, fmt.Errorf("the inherited socket %q is file %d, which is not open", name, fd)
	}
	defer f.Close() // the listener has a file of its own
	l, err := net.FileListener(f)
	if err != nil {
		return socket{}, fmt.Errorf("the inherited file %d (%s) is not a listening socket: %w", fd, name, err)
	}
	return socket{name, l}, nil
}

// isHeld reports whether systemd holds a socket, by what the environment says.
func isHeld(name, heir, held string) bool {
	return heir == "" || heir == heirHeld || slices.Contains(strings.Split(held, ":"), name)
}

// take removes the socket of a name from those that are left. A single socket
// without a name is for whoever asks first.
func (h *Heir) take(name string) net.Listener {
	i := slices.IndexFunc(h.sockets, func(s socket) bool { return s.name == name })
	if i < 0 && len(h.sockets) == 1 && h.sockets[0].name == "" {
		i = 0
	}
	if i < 0 {
		return nil
	}
	s := h.sockets[i]
	h.sockets = slices.Delete(h.sockets, i, i+1)
	if h.held[s.name] {
		h.held[name] = true // also if it had no name
	}
	return s.listener
}

// Unused are the names of inherited sockets that nobody asked for.
func (h *Heir) Unused() []string {
	var names []string
	for _, s := range h.sockets {
		names = append(names, fmt.Sprintf("%q on %s", s.name, s.listener.Addr()))
	}
	return names
}

// Held reports whether systemd holds sockets that this process inherited, directly
// or from a predecessor: they stay when it ends.
func (h *Heir) Held() bool { return len(h.held) > 0 }

// Follows reports whether a predecessor waits for this process.
func (h *Heir) Follows() bool { return h.predecessor != nil }

// Left returns the folder in which the predecessor has left something; "" if it has not. It is
// there until this process is prepared.
func (h *Heir) Left() string { return h.left }

// Close lets go of what was inherited and not asked for.
func (h *Heir) Close() {
	for _, s := range h.sockets {
		s.listener.Close()
	}
	h.sockets = nil
}
