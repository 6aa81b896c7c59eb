package source

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// mark is what the file system says about a file: identity, time, size and mode. While the mark is
// the same, the content is, too, unless the mark is young.
type mark struct {
	info fs.FileInfo // nil if the file cannot be opened
	// young: it was changed so recently that another change could have the same time, which on some
	// mounts has whole seconds.
	young bool
}

// ageOfTrust is longer than the coarsest resolution of file times (2 s on FAT).
const ageOfTrust = 2500 * time.Millisecond

// markOf opens the file: on a network mount, a bare stat may be answered from a cache for a minute,
// while an open asks the server. It does not block on a pipe.
func markOf(name string) mark {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return mark{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return mark{}
	}
	return mark{info: info, young: time.Since(info.ModTime()) < ageOfTrust}
}

func (m mark) isDir() bool { return m.info != nil && m.info.IsDir() }

func (m mark) same(other mark) bool {
	if m.info == nil || other.info == nil {
		return m.info == nil && other.info == nil
	}
	a, b := m.info, other.info
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
