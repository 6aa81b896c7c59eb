package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever becomes of the file: what was in force stays, it is told once, and
// the file is taken up again when it is good again.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		destroy, repair func(t *testing.T, file string)
		says            string
		settle          time.Duration // where it takes two steps; what is between them is not told
	}{
		"nonsense": {
			destroy: func(t *testing.T, file string) { replace(t, file, "version: 1\nrules: [ { nmae: api } ]\n") },
			says:    "nmae",
		},
		"emptied": {
			destroy: func(t *testing.T, file string) { write(t, file, "") },
			says:    "empty",
		},
		"deleted": {
			destroy: func(t *testing.T, file string) { do(t, os.Remove(file)) },
			says:    "no such file",
		},
		"folder deleted": {
			destroy: func(t *testing.T, file string) { do(t, os.RemoveAll(filepath.Dir(file))) },
			repair:  func(t *testing.T, file string) { mkdir(t, filepath.Dir(file)) },
			says:    "no such file",
		},
		"replaced by a folder": {
			destroy: func(t *testing.T, file string) {
				do(t, os.Remove(file))
				mkdir(t, file)
			},
			repair: func(t *testing.T, file string) { do(t, os.Remove(file)) },
			says:   "no *.yaml file",
			settle: time.Second,
		},
		"replaced by a pipe": {
			destroy: func(t *testing.T, file string) {
				makePipe(t, file+".pipe")
				do(t, os.Rename(file+".pipe", file))
			},
			says: "not a regular file",
		},
		"a link to itself": {
			destroy: func(t *testing.T, file string) { link(t, "rules.yaml", file) },
			says:    "too many levels of symbolic links",
		},
		"permission lost": {
			destroy: func(t *testing.T, file string) { do(t, os.Chmod(file, 0)) },
			repair:  func(t *testing.T, file string) { do(t, os.Chmod(file, 0o644)) },
			says:    "permission denied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, p pace) {
				file := filepath.Join(mkdir(t, t.TempDir(), "conf"), "rules.yaml")
				write(t, file, limit(10))
				o := Options{}
				o.Config.ReadFile = readAsAnybody
				p.settle = max(p.settle, c.settle)
				w := startWith(t, file, p, o)
				before := w.Status()
				for round := range 2 {
					c.destroy(t, file)
					s := w.wantsFailure(10 + int64(round))
					if !strings.Contains(s.LastError, c.says) || len(s.Problems) == 0 || time.Since(s.Since) > deadline {
						t.Errorf("%+v, want %q", s, c.says)
					}
					if round == 0 && (s.Hash != before.Hash || s.LoadedAt != before.LoadedAt) {
						t.Errorf("%+v, want what is in force: %+v", s, before)
					}
					if c.repair != nil {
						c.repair(t, file)
					}
					replace(t, file, limit(11+round))
					w.wants(11 + int64(round))
				}
				w.wantsCounts(2, 2)
				if s := w.Status(); s.LastError != "" || s.Problems != nil || !s.Since.IsZero() || s.Hash == before.Hash {
					t.Errorf("after all is well: %+v", s)
				}
			})
		})
	}
}

// readAsAnybody is os.ReadFile for tests that run as root, who may read all.
func readAsAnybody(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().Perm() == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return os.ReadFile(name)
}

// A disk that fails for a while leaves the file as it was, from outside.
func TestReadErrorThatPasses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, file, limit(10))
	var bad atomic.Bool
	o := Options{}
	o.Config.ReadFile = func(name string) ([]byte, error) {
		if bad.Load() {
			return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("input/output error")}
		}
		return os.ReadFile(name)
	}
	w := startWith(t, file, modes["polling"], o)
	bad.Store(true)
	write(t, file+".new", limit(20))
	old := time.Now().Add(-time.Hour)
	do(t, os.Chtimes(file+".new", old, old))
	do(t, os.Rename(file+".new", file))
	if s := w.wantsFailure(10); !strings.Contains(s.LastError, "input/output error") {
		t.Errorf("%+v", s)
	}
	bad.Store(false)
	w.wants(20)
	w.wantsCounts(1, 1)
}

// Back to what is in force: there is nothing to reload, and nothing wrong.
func TestBrokenAndPutBack(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(10))
		w := start(t, file, p)
		set := w.Live().Set()
		replace(t, file, "nonsense")
		w.wantsFailure(10)
		replace(t, file, limit(10))
		eventually(t, "the failure forgotten", func() bool { return w.Status().LastError == "" })
		w.wantsCounts(0, 1)
		if w.Live().Set() != set || !w.Status().Since.IsZero() {
			t.Errorf("%+v", w.Status())
		}
	})
}

// Something bad that keeps changing is told as well, if not at once.
func TestBrokenAndChanging(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.settle, p.badTimeout = time.Second, 200*time.Millisecond
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(10))
		w := start(t, file, p)
		text := "nonsense"
		eventually(t, "a failure", func() bool {
			text += "!"
			write(t, file, text)
			return w.Status().Failed > 0
		})
	})
}

// The one bad file of many: none of the others is used either.
func TestBrokenOfSeveral(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.yaml"), rule("a", 1))
		write(t, filepath.Join(dir, "b.yaml"), rule("b", 2))
		w := start(t, dir, p)
		replace(t, filepath.Join(dir, "b.yaml"), "nonsense")
		replace(t, filepath.Join(dir, "a.yaml"), rule("a", 10))
		s := w.wantsFailure(3)
		if !strings.Contains(s.LastError, "b.yaml") {
			t.Errorf("%+v", s)
		}
		replace(t, filepath.Join(dir, "b.yaml"), rule("b", 20))
		w.wants(30)
		w.wantsCounts(1, 1)
	})
}

func TestWatchOfSomethingBad(t *testing.T) {
	f := func(content string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "rules.yaml")
		if content != "" {
			write(t, file, content)
		}
		if w, err := Watch(t.Context(), file, Options{}); err == nil || w != nil || !strings.HasPrefix(err.Error(), "load rules "+file) {
			t.Errorf("Watch of %q: %v, %v", content, w, err)
		}
	}
	f("")
	f("nonsense")
	f(strings.Replace(limit(10), "limits", "limit", 1))
}
