package source

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Each of these puts 20 where 10 was, in the way of some editor or tool.
func TestEdits(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, file string){
		"in place":        func(t *testing.T, file string) { write(t, file, limit(20)) },
		"renamed over it": func(t *testing.T, file string) { replace(t, file, limit(20)) },
		"vim": func(t *testing.T, file string) {
			do(t, os.Rename(file, file+"~"))
			write(t, file, limit(20))
			do(t, os.Remove(file+"~"))
		},
		"deleted and made again": func(t *testing.T, file string) {
			do(t, os.Remove(file))
			write(t, file, limit(20))
		},
		"a line at a time": func(t *testing.T, file string) {
			f, err := os.Create(file)
			do(t, err)
			defer f.Close()
			for line := range strings.Lines(limit(20)) {
				_, err = f.WriteString(line)
				do(t, err)
			}
		},
		"its folder replaced": func(t *testing.T, file string) {
			dir := filepath.Dir(file)
			write(t, filepath.Join(mkdir(t, dir+".new"), filepath.Base(file)), limit(20))
			do(t, os.Rename(dir, dir+".old"))
			do(t, os.Rename(dir+".new", dir))
		},
		"its folder away and back": func(t *testing.T, file string) {
			dir := filepath.Dir(file)
			do(t, os.Rename(dir, dir+".old"))
			do(t, os.Rename(dir+".old", dir))
			write(t, file, limit(20))
		},
		"replaced by a link": func(t *testing.T, file string) {
			write(t, file+".v2", limit(20))
			link(t, filepath.Base(file)+".v2", file)
		},
		"its size and time kept": func(t *testing.T, file string) {
			info, err := os.Stat(file)
			do(t, err)
			write(t, file, limit(20))
			do(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, p pace) {
				p.settle = deadline // a test that is stopped in the middle is no broken file
				file := filepath.Join(mkdir(t, t.TempDir(), "conf"), "rules.yaml")
				write(t, file, limit(10))
				w := start(t, file, p)
				w.wants(10)
				edit(t, file)
				w.wants(20)
				w.wantsCounts(1, 0)
				// It is still followed where it is now.
				write(t, file, limit(30))
				w.wants(30)
				w.wantsCounts(2, 0)
			})
		})
	}
}

// An editor is caught in the middle: nothing is reported, and the half file is
// never in force.
func TestHalfWritten(t *testing.T) {
	for name, half := range map[string]func(t *testing.T, file string){
		"emptied":  func(t *testing.T, file string) { write(t, file, "") },
		"cut off":  func(t *testing.T, file string) { write(t, file, limit(20)[:30]) },
		"not here": func(t *testing.T, file string) { do(t, os.Remove(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, p pace) {
				p.settle = deadline
				file := filepath.Join(t.TempDir(), "rules.yaml")
				write(t, file, limit(10))
				whole, _ := os.ReadFile(file)
				var looks atomic.Int64 // at the half file
				o := Options{}
				o.Config.ReadFile = func(name string) ([]byte, error) {
					data, err := os.ReadFile(name)
					if !bytes.Equal(data, whole) {
						looks.Add(1)
					}
					return data, err
				}
				w := startWith(t, file, p, o)
				half(t, file)
				eventually(t, "a look at the half file", func() bool { return looks.Load() >= 2 }) // one finds it changed, one loads
				if got := w.admits(); got != 10 {
					t.Errorf("%d are admitted, want 10", got)
				}
				write(t, file, limit(20))
				w.wants(20)
				w.wantsCounts(1, 0)
				if s := w.Status(); s.LastError != "" || !s.Since.IsZero() {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// withList is a rule file that bans the users of a list.
const withList = `version: 1
identify: { who: client header X-Who }
lists: { names: file names.txt }
rules:
  - { name: banned, when: { who: in names }, deny: true }
`

// A list that is emptied and then written does not let anybody in meanwhile; one
// that is emptied for good does.
func TestEmptiedList(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.settle = 2 * time.Second // until which the list has to be written again
		dir := t.TempDir()
		file, list := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "names.txt")
		write(t, list, "alice\n")
		write(t, file, withList)
		var looks atomic.Int64 // at the empty list
		o := Options{}
		o.Config.ReadFile = func(name string) ([]byte, error) {
			data, err := os.ReadFile(name)
			if len(data) == 0 {
				looks.Add(1)
			}
			return data, err
		}
		w := startWith(t, file, p, o)
		write(t, list, "")
		eventually(t, "a look at the empty list", func() bool { return looks.Load() >= 2 })
		replace(t, list, "alice\nbob\n")
		eventually(t, "bob banned", func() bool { return w.bans("bob") })
		w.wantsCounts(1, 0)
		write(t, list, "")
		eventually(t, "nobody banned", func() bool { return !w.bans("alice") && !w.bans("bob") })
		w.wantsCounts(2, 0)
	})
}

func TestBurst(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.quiet, p.most, p.settle = 100*time.Millisecond, 500*time.Millisecond, deadline
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(1))
		w := start(t, file, p)
		began := time.Now()
		for n := range 100 {
			write(t, file, limit(n+2))
			time.Sleep(time.Millisecond)
		}
		took := time.Since(began)
		w.wants(101)
		eventually(t, "a reload that is counted", func() bool { return w.Status().Reloads > 0 }) // after its rules are in force
		// One after the burst, and on a machine that stands still now and then one for each
		// time that it was quiet.
		if got, most := w.Status().Reloads, 1+int(took/p.quiet); got > most {
			t.Errorf("%d reloads for 100 writes in %s, want at most %d", got, took, most)
		}
		if w.Status().Failed != 0 {
			t.Errorf("%+v", w.Status())
		}
	})
}

// Changes that never stop do not put a reload off for ever.
func TestEndlessBurst(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.quiet, p.most = 200*time.Millisecond, 300*time.Millisecond
		file := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, file, limit(1))
		w := start(t, file, p)
		for n := 2; w.Status().Reloads == 0; n++ {
			if n > 1000 {
				t.Fatal("1000 changes in a row, and no reload")
			}
			replace(t, file, limit(n))
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// What is the same afterwards is not reloaded, whatever was done to the file.
func TestUnchanged(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		p.settle = deadline
		dir := t.TempDir()
		file := filepath.Join(dir, "rules.yaml")
		write(t, file, limit(10))
		w := start(t, file, p)
		set, status := w.Live().Set(), w.Status()
		for range 5 {
			now := time.Now()
			do(t, os.Chtimes(file, now, now))
			write(t, file, limit(10))
			replace(t, file, limit(10))
			do(t, os.Chmod(file, 0o600))
			write(t, filepath.Join(dir, "other.yaml"), limit(now.Nanosecond()))
			time.Sleep(p.quiet)
		}
		write(t, file, limit(11)) // what comes after is seen, so the rest was as well
		w.wants(11)
		w.wantsCounts(1, 0)
		if status.Hash == w.Status().Hash || set == w.Live().Set() {
			t.Error("the change was not counted")
		}
	})
}

func TestManyFiles(t *testing.T) {
	bothModes(t, func(t *testing.T, p pace) {
		dir := t.TempDir()
		for n := range 100 {
			write(t, filepath.Join(dir, "r"+strconv.Itoa(n)+".yaml"), rule("r"+strconv.Itoa(n), 1))
		}
		w := start(t, dir, p)
		w.wants(100)
		write(t, filepath.Join(dir, "r50.yaml"), rule("r50", 2))
		w.wants(101)
	})
}
