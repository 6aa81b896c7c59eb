package serve

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// followedFile is the content of a file that is read again when it has changed: by get, which
// checks that once a second at most, or at once by again.
type followedFile[T any] struct {
	what string // "the token of the check API"
	file string
	read func(file string) (T, error)
	log  *slog.Logger

	value atomic.Pointer[T]
	mu    sync.Mutex
	disk  followed // under mu
}

// followFile reads the file, and returns what follows it. It fails if the first read does.
func followFile[T any](what, file string, read func(string) (T, error), log *slog.Logger) (*followedFile[T], error) {
	f := &followedFile[T]{what: what, file: file, read: read, log: log, disk: follow(file)}
	v, err := read(file)
	if err != nil {
		return nil, err
	}
	f.value.Store(&v)
	return f, nil
}

// get returns the content that was last read successfully. Before, it reads a changed file again.
func (f *followedFile[T]) get() T {
	if f.mu.TryLock() { // otherwise another goroutine is checking
		if f.disk.changed() {
			f.reload()
		}
		f.mu.Unlock()
	}
	return *f.value.Load()
}

// again reads the file now.
func (f *followedFile[T]) again() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disk.look(time.Now())
	f.reload()
}

func (f *followedFile[T]) reload() {
	v, err := f.read(f.file)
	if err != nil {
		f.log.Error(f.what+" could not be read again: what was read before stays in use", "file", f.file, "err", err)
		return
	}
	f.value.Store(&v)
	f.log.Info(f.what+" was read again", "file", f.file)
}

const maxUsers = 10_000

// readUsers reads the users of the RESP listener: one per line, with name, password and,
// optionally, the prefix of the user's keys.
func readUsers(file string) (users []resp.User, err error) {
	text, err := bounded.ReadFile(file, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("read the users of the RESP listener: %w", err)
	}
	var wrong diag.List
	seen := make(map[string]bool)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		tell := func(message, hint string) {
			wrong.Add(diag.Problem{Pos: diag.Pos{File: file, Line: number, Col: 1}, Severity: diag.Error, Message: message, Hint: hint})
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 1:
			tell("the user has no password", "write its name and its password, with a space between")
		case len(words) > 3:
			tell("there are more than a name, a password and a prefix", "passwords and prefixes have no spaces in them")
		case seen[words[0]]:
			tell("the user is there twice", "")
		case len(users) == maxUsers:
			tell(fmt.Sprintf("there are more than %d users", maxUsers), "")
		default:
			u := resp.User{Name: words[0], Password: words[1]}
			if len(words) == 3 {
				u.Prefix = words[2]
			}
			seen[u.Name] = true
			users = append(users, u)
		}
	}
	switch {
	case wrong.HasErrors():
		return nil, wrong
	case len(users) == 0:
		return nil, diag.List{{
			Pos: diag.Pos{File: file}, Severity: diag.Error, Message: "there are no users in the file, so anybody could ask",
			Hint: "write a line such as `default` and a password, with a space between",
		}}
	}
	return users, nil
}
