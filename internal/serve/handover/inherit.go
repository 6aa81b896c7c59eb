package handover

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Heir is what this process has inherited: sockets, and perhaps a predecessor that waits for it.
// Use [Inherit].
type Heir struct {
	sockets     []socket
	held        map[string]bool // names of sockets that systemd also holds
	predecessor *predecessor    // nil if there is none
	left        string          // a folder; "" means none
	sockFiles   []sockFile      // of the predecessor
}

type socket struct {
	name     string
	listener net.Listener
}

// Inherit takes over what the environment says was passed on, and removes the variables, so that
// programs started later do not use them. Having inherited nothing is not an error.
func Inherit() (*Heir, error) { return inherit(firstFD) }

// inherit is Inherit for sockets from the file descriptor first on.
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

// nameOf returns the name of a socket; "" if it has none.
func nameOf(names string, i int) string {
	all := strings.Split(names, ":")
	if i >= len(all) || all[i] == "unknown" || strings.HasSuffix(all[i], ".socket") {
		return "" // systemd's names for a socket without a name
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

// isHeld reports whether systemd holds a socket, according to the environment.
func isHeld(name, heir, held string) bool {
	return heir == "" || heir == heirHeld || slices.Contains(strings.Split(held, ":"), name)
}

// take removes the socket of that name from those that are left. A single socket without a name is
// given to the first caller.
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
		h.held[name] = true // even if it had no name
	}
	return s.listener
}

// Unused returns the inherited sockets that were not taken, with their names and addresses.
func (h *Heir) Unused() []string {
	var names []string
	for _, s := range h.sockets {
		names = append(names, fmt.Sprintf("%q on %s", s.name, s.listener.Addr()))
	}
	return names
}

// Held reports whether systemd holds sockets that this process has inherited, directly or through a
// predecessor: they stay open when it ends.
func (h *Heir) Held() bool { return len(h.held) > 0 }

// Follows reports whether a predecessor waits for this process.
func (h *Heir) Follows() bool { return h.predecessor != nil }

// Left returns the folder with the files of the predecessor; "" if there is none. It exists until
// this process is prepared.
func (h *Heir) Left() string { return h.left }

// Close closes what was inherited and not taken.
func (h *Heir) Close() {
	for _, s := range h.sockets {
		s.listener.Close()
	}
	h.sockets = nil
}
