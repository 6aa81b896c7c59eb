package serve

import (
	"io/fs"
	"os"
	"time"
)

// lookAgain is the shortest time between two checks of the files.
const lookAgain = time.Second

// followed notices changes of files, so that they can be read again. Only one goroutine may use it at
// a time.
type followed struct {
	names  []string
	seen   []fs.FileInfo // at the last check; nil for a missing file
	looked time.Time
}

// follow returns a followed for files as they are now.
func follow(names ...string) followed {
	f := followed{names: names, seen: make([]fs.FileInfo, len(names))}
	f.look(time.Now())
	return f
}

// changed reports whether a file has changed, if it is time to check again.
func (f *followed) changed() bool {
	now := time.Now()
	return now.Sub(f.looked) >= lookAgain && f.look(now)
}

// look records the state of the files, and reports whether one has changed.
func (f *followed) look(now time.Time) (changed bool) {
	f.looked = now
	for i, name := range f.names {
		is, err := os.Stat(name)
		if err != nil {
			is = nil
		}
		changed = changed || !sameFile(is, f.seen[i])
		f.seen[i] = is
	}
	return changed
}

// sameFile reports whether a file is the same as before; nil means that it was not there.
func sameFile(is, was fs.FileInfo) bool {
	if is == nil || was == nil {
		return is == nil && was == nil
	}
	return os.SameFile(is, was) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size()
}
