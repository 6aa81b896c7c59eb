package serve

import (
	"io/fs"
	"os"
	"time"
)

// lookAgain is how long files are believed to be as they were.
const lookAgain = time.Second

// followed are files that are read again when one of them is not what it was. Whoever has
// it sees to it that one goroutine looks at a time.
type followed struct {
	names  []string
	seen   []fs.FileInfo // as they were when they were last looked at; nil: not there
	looked time.Time
}

func follow(names ...string) followed {
	f := followed{names: names, seen: make([]fs.FileInfo, len(names))}
	f.look(time.Now())
	return f
}

// changed reports whether a file is not what it was, if it is time to look again.
func (f *followed) changed() bool {
	now := time.Now()
	return now.Sub(f.looked) >= lookAgain && f.look(now)
}

// look remembers what the files are, and reports whether one is not what it was.
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

// sameFile compares two looks at one name; nil: nothing was there.
func sameFile(is, was fs.FileInfo) bool {
	if is == nil || was == nil {
		return is == nil && was == nil
	}
	return os.SameFile(is, was) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size()
}
