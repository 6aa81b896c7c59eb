package source

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// The rules stay the same, and are elsewhere or in a folder that is watched no
// more: the next change is seen without polling.
func TestFollowedThoughUnchanged(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, dir, file string) (written string){
		"linked to the same elsewhere": func(t *testing.T, dir, file string) string {
			other := filepath.Join(mkdir(t, dir, "other"), "rules.yaml")
			write(t, other, limit(10))
			link(t, other, file)
			return other
		},
		"folder away and back": func(t *testing.T, dir, file string) string {
			do(t, os.Rename(filepath.Dir(file), filepath.Join(dir, "away")))
			do(t, os.Rename(filepath.Join(dir, "away"), filepath.Dir(file)))
			return file
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(mkdir(t, dir, "conf"), "rules.yaml")
			write(t, file, limit(10))
			var looks atomic.Int64
			o := Options{}
			o.Config.ReadFile = func(name string) ([]byte, error) {
				looks.Add(1)
				return os.ReadFile(name)
			}
			p := modes["reports"]
			p.settle = deadline
			w := startWith(t, file, p, o)
			before := looks.Load()
			written := move(t, dir, file)
			eventually(t, "a look", func() bool { return looks.Load() > before })
			eventually(t, "20 admitted", func() bool {
				replace(t, written, limit(20))
				return w.admits() == 20
			})
		})
	}
}

// A folder that is another one under the old name is asked for anew, also when
// it was one above it that was exchanged.
func TestNotifierFindsReplacedFolders(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	do(t, err)
	dir, other := mkdir(t, base, "a", "conf"), mkdir(t, base, "b", "conf")
	n := newNotifier(slog.New(slog.NewTextHandler(io.Discard, nil)), true)
	defer n.close()
	n.watch([]string{dir})
	// heard waits for a report as long as it takes where one is due, and otherwise, or for
	// further ones, a moment.
	heard := func(in string, due bool) bool {
		t.Helper()
		write(t, filepath.Join(in, "file"), time.Now().String())
		heard := false
		for {
			wait := 100 * time.Millisecond
			if due && !heard {
				wait = time.Minute
			}
			select {
			case <-n.events():
				heard = true
			case <-time.After(wait):
				return heard
			}
		}
	}
	if !heard(dir, true) || n.lost() {
		t.Fatal("the folder is not watched")
	}
	do(t, os.Rename(filepath.Join(base, "a"), filepath.Join(base, "c")))
	do(t, os.Rename(filepath.Dir(other), filepath.Join(base, "a")))
	if !n.lost() {
		t.Error("the folder is another one, and not lost")
	}
	n.watch([]string{dir})
	if n.lost() || !heard(dir, true) {
		t.Error("the new folder is not watched")
	}
	if heard(filepath.Join(base, "c", "conf"), false) {
		t.Error("the old folder is still watched")
	}
	n.watch(nil)
	if heard(dir, false) || n.lost() {
		t.Error("a folder that nobody wants is still watched")
	}
}

// Without reports, rules are followed all the same.
func TestReportsThatEnd(t *testing.T) {
	n := newNotifier(slog.New(slog.NewTextHandler(io.Discard, nil)), true)
	n.failed(io.ErrUnexpectedEOF)
	if n.events() != nil || n.errors() != nil || n.lost() {
		t.Error("events are still waited for")
	}
	n.watch([]string{t.TempDir()})
	n.close()
}
