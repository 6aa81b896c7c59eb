package source

import (
	"log/slog"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// notifier asks the kernel to report changes in the folders of the rules. Nothing depends on it:
// network mounts report nothing, and the number of watches is limited. Polling finds what it
// misses.
type notifier struct {
	log  *slog.Logger
	fs   *fsnotify.Watcher // nil means that only polling is used
	dirs map[string]os.FileInfo
	full bool // it was logged that there are no more watches
}

func newNotifier(log *slog.Logger, on bool) *notifier {
	n := &notifier{log: log, dirs: map[string]os.FileInfo{}}
	if !on {
		return n
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("rule files are polled: the kernel does not report their changes; on Linux, fs.inotify.max_user_instances may be too low", "err", err)
		return n
	}
	n.fs = w
	return n
}

// events returns the channel of changes. Like that of errors, it is nil, which is never ready, if
// only polling is used.
func (n *notifier) events() <-chan fsnotify.Event {
	if n.fs == nil {
		return nil
	}
	return n.fs.Events
}

func (n *notifier) errors() <-chan error {
	if n.fs == nil {
		return nil
	}
	return n.fs.Errors
}

// failed handles an error of the kernel's notifications. An overflow counts as an event; after any
// other error, only polling is used.
func (n *notifier) failed(err error) {
	if err == fsnotify.ErrEventOverflow {
		return
	}
	n.log.Warn("rule files are polled from now on: the kernel no longer reports their changes", "err", err)
	n.close()
}

// watch sets the folders to watch. A folder that was replaced by another of the same name is
// watched anew.
func (n *notifier) watch(dirs []string) {
	if n.fs == nil {
		return
	}
	for dir := range n.dirs {
		if !slices.Contains(dirs, dir) {
			n.drop(dir)
		}
	}
	for _, dir := range dirs {
		if !n.watches(dir) {
			n.drop(dir)
			n.add(dir)
		}
	}
}

// lost reports whether a watched folder is gone or was replaced.
func (n *notifier) lost() bool {
	for dir := range n.dirs {
		if !n.watches(dir) {
			return true
		}
	}
	return false
}

func (n *notifier) watches(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && n.dirs[dir] != nil && os.SameFile(info, n.dirs[dir]) && slices.Contains(n.fs.WatchList(), dir)
}

func (n *notifier) add(dir string) {
	info, err := os.Lstat(dir)
	if err != nil {
		return // it went away; the next call takes the folder above
	}
	if err := n.fs.Add(dir); err != nil {
		if !n.full {
			n.log.Warn("a folder of the rules is polled: the kernel does not report its changes; on Linux, fs.inotify.max_user_watches may be too low", "folder", dir, "err", err)
		}
		n.full = true
		return
	}
	n.dirs[dir] = info
}

// drop stops watching dir. It ignores errors of Remove: a folder that is gone is not watched
// either.
func (n *notifier) drop(dir string) {
	if n.dirs[dir] == nil {
		return
	}
	_ = n.fs.Remove(dir)
	delete(n.dirs, dir)
}

func (n *notifier) close() {
	if n.fs != nil {
		n.fs.Close()
		n.fs = nil
	}
	clear(n.dirs)
}
