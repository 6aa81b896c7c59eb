//go:build unix

package durable

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group of old: a gateway that runs as another user can then
// still read what root wrote. It reports whether f has the group.
func keepOwner(f *os.File, old fs.FileInfo) bool {
	s, ok := old.Sys().(*syscall.Stat_t)
	return ok && (f.Chown(int(s.Uid), int(s.Gid)) == nil || f.Chown(-1, int(s.Gid)) == nil)
}
