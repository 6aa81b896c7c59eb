package source

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/rules"
)

// A start with every state of the source, every state of the copy, and both words for what to
// do without them: it begins with the newest that is good, and with nothing only if that was
// asked for. When the source is well again, its rules are in force.
func TestStarts(t *testing.T) {
	const bad = "version: 1\nrules: [{ nmae: x }]\n"
	sources := map[string]func(*stand){
		"well":    func(s *stand) { s.newest = bundle("5", 5) },
		"away":    func(s *stand) { s.err = errAway },
		"deaf":    func(s *stand) { s.deaf = true },
		"garbage": func(s *stand) { s.newest = &Bundle{Edition: Edition{Revision: "5"}} },
		"bad":     func(s *stand) { s.newest = text("5", bad) },
		"older":   func(s *stand) { s.newest = bundle("3", 3) },
	}
	copies := map[string]func(folder string) error{
		"none": func(string) error { return nil },
		"good": func(folder string) error { return saveCopy(folder, "o", bundle("4", 4)) },
		"bad":  func(folder string) error { return saveCopy(folder, "o", text("4", bad)) },
		"damaged": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, copyName("o")), []byte(`{"format":1`), 0o600)
		},
	}
	for source, how := range sources {
		for saved, save := range copies {
			for _, open := range []bool{false, true} {
				t.Run(source+", copy "+saved+map[bool]string{true: ", open", false: ", refuse"}[open], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						folder := t.TempDir()
						do(t, save(folder))
						s := newStand("o", nil)
						how(s)
						begun := time.Now()
						w, err := tryFollow(t, Options{Copy: folder, Open: open}, Layer{Origin: s})
						took := time.Since(begun)
						want, fromCopy := int64(0), false
						switch {
						case source == "well":
							want = 5
						case source == "older" && saved != "good" && saved != "bad":
							want = 3
						case saved == "good":
							want, fromCopy = 4, true
						}
						if want == 0 && !open {
							var load *rules.LoadError
							if err == nil || errors.As(err, &load) != (source == "bad" || source != "well" && saved == "bad") || strings.Contains(err.Error(), folder) {
								t.Errorf("started without rules: %v", err)
							}
							if !s.isClosed() && source != "deaf" {
								t.Error("the source is not closed")
							}
							s.publish(bundle("9", 9)) // a deaf one ends
							return
						}
						do(t, err)
						defer w.Close()
						if took > 12*time.Second {
							t.Errorf("it took %s", took)
						}
						l := w.layer(0)
						switch {
						case want == 0 && (!w.Status().None || !l.Behind() || len(w.Live().Set().Rules()) > 0):
							t.Errorf("%+v, %+v", w.Status(), l)
						case want > 0 && (w.admits() != want || w.Status().None || l.FromCopy != fromCopy || l.Behind() != fromCopy):
							t.Errorf("%d are admitted, want %d; %+v", w.admits(), want, l)
						case source == "bad" && (l.Refused == nil || l.Refused.Revision != "5"):
							t.Errorf("%+v, want a refused revision", l)
						}
						time.Sleep(time.Minute)
						s.publish(bundle("9", 9))
						time.Sleep(lastRetry)
						w.is(0, "9", 9)
						if l := w.layer(0); l.Behind() || w.Status().None || w.Status().LastError != "" || w.reloads.Load() != 1 {
							t.Errorf("afterwards: %+v, %+v, %d reloads", w.Status(), l, w.reloads.Load())
						}
						if b, err := loadCopy(folder, "o"); err != nil || b.Revision != "9" {
							t.Errorf("the copy is %v, %v", b, err)
						}
					})
				})
			}
		}
	}
}

// A copy is used for the source that it was made of, whole, and by its owner alone.
func TestCopies(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "copies")
	b := bundle("7", 7)
	b.Files["lists/l.txt"] = []byte("\xff\x00not text")
	do(t, saveCopy(folder, "redis://h/0#rules", b))
	name := filepath.Join(folder, copyName("redis://h/0#rules"))
	info, err := os.Stat(name)
	do(t, err)
	if info.Mode().Perm() != 0o600 || !strings.HasPrefix(filepath.Base(name), "redis-h-0-rules-") {
		t.Errorf("%s has mode %v", name, info.Mode())
	}
	got, err := loadCopy(folder, "redis://h/0#rules")
	if err != nil || !got.sameFiles(b) || got.Edition != b.Edition {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := loadCopy(folder, "redis://h/0#other"); !os.IsNotExist(err) {
		t.Errorf("of another source: %v", err)
	}
	whole, err := os.ReadFile(name)
	do(t, err)
	for i := range whole {
		cut, flipped := whole[:i], slices.Clone(whole)
		flipped[i] ^= 1
		for _, text := range [][]byte{cut, flipped} {
			write(t, name, string(text))
			if b, err := loadCopy(folder, "redis://h/0#rules"); err == nil && (!b.sameFiles(got) || b.Edition != got.Edition) {
				t.Fatalf("damaged at byte %d, it is used: %+v", i, b)
			}
		}
	}
}

// What a predecessor hands over goes before the copy on disk.
func TestHandedCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand("o", bundle("5", 5))
		w, err := tryFollow(t, Options{}, Layer{Origin: s})
		do(t, err)
		handed, own := t.TempDir(), t.TempDir()
		do(t, w.KeepCopies(handed))
		w.Close()
		do(t, saveCopy(own, "o", bundle("4", 4)))
		s = newStand("o", nil)
		s.err = errAway
		w, err = tryFollow(t, Options{Handed: handed, Copy: own}, Layer{Origin: s})
		do(t, err)
		w.is(0, "5", 5)
		if l := w.layer(0); !l.FromCopy || !l.Behind() {
			t.Errorf("%+v", l)
		}
		w.Close()
	})
}

// A copy that cannot be written is told once, and the rules are in force nevertheless.
func TestCopiesThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, "")
		s := newStand("o", bundle("1", 1))
		w, err := tryFollow(t, Options{Copy: filepath.Join(file, "sub")}, Layer{Origin: s})
		do(t, err)
		defer w.Close()
		s.publish(bundle("2", 2))
		time.Sleep(time.Second)
		w.is(0, "2", 2)
	})
}
