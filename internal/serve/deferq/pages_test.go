package deferq

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// fullFile is a file with pages of all kinds, and what it is made of.
func fullFile(t testing.TB) (whole []byte, pageSize int) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 16<<20)
	pageSize = f.db.Info().PageSize
	for i := range 300 {
		body := fmt.Sprint(i)
		if i%10 == 0 {
			body = strings.Repeat("x", 3*pageSize) // goes on for several pages
		}
		add(t, f, entryOf(fmt.Sprint(i%7), body))
	}
	for range 60 {
		e, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.State, e.Ended = Done, time.Now()
		f.End(e)
	}
	closed(t, f)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole, pageSize
}

// openDamaged opens a file, and reads all that is in it. Whatever is wrong, the process goes on, and the file is left as it is.
func openDamaged(t testing.TB, name string, raw []byte) (err error) {
	t.Helper()
	path := writeFile(t, raw)
	f, err := OpenFile(path, FileOptions{Max: 16 << 20})
	if err == nil {
		_ = f.List(t.Context(), func(e *Entry) bool {
			_, _ = f.read(f.byID[e.ID], true) // it may be unreadable
			return true
		})
		closed(t, f)
	} else if !strings.Contains(err.Error(), path) {
		t.Errorf("%s: %v does not name the file", name, err)
	}
	if left, _ := os.ReadFile(path); !bytes.Equal(left, raw) {
		t.Errorf("%s: the file was changed, with the error %v", name, err)
	}
	return err
}

// A file that was cut ends nobody.
func TestFileIsCut(t *testing.T) {
	whole, pageSize := fullFile(t)
	if err := openDamaged(t, "whole", whole); err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	for n := 1; n < used; n += pageSize * max(1, used/pageSize/40) {
		for _, to := range []int{n, n / pageSize * pageSize} {
			if to == 0 {
				continue // a new file
			}
			if err := openDamaged(t, fmt.Sprint("cut to ", to), whole[:to]); err == nil {
				t.Errorf("%d of %d bytes were opened", to, used)
			}
		}
	}
}

// A few wrong bytes anywhere, also where they make the worst numbers, end nobody.
func TestFewBytesAreWrong(t *testing.T) {
	testdep.SkipUnderRace(t)
	whole, pageSize := fullFile(t)
	used := len(bytes.TrimRight(whole, "\x00")) / pageSize
	random := rand.New(rand.NewPCG(3, 4))
	found := 0
	for i := range testdep.Longer(150, 5000) {
		raw := slices.Clone(whole)
		at := random.IntN(used)*pageSize + random.IntN(200) // heads and elements come first
		n := 1 + random.IntN(8)
		for j := range n {
			raw[at+j] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(random.Uint32())}[random.IntN(6)]
		}
		if openDamaged(t, fmt.Sprintf("number %d: %d bytes at %d", i, n, at), raw) != nil {
			found++
		}
	}
	if found == 0 {
		t.Error("no damage was found")
	}
}

// While pages cannot be read, as the disk has failed or the file was cut, nothing is given up and nobody ends.
func TestPagesAreGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deferred")
	f := openFile(t, path, 16<<20)
	const all = 50
	for i := range all {
		add(t, f, entryOf(fmt.Sprint(i), strings.Repeat("x", 10<<10)))
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(2*f.db.Info().PageSize)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		var fault *faultError
		if e, err := f.Next(t.Context()); !errors.As(err, &fault) {
			t.Fatalf("%+v %v", e, err)
		}
	}
	if s, _ := f.Stats(t.Context()); s.Waiting != all || s.Dead != 0 {
		t.Errorf("%+v", s)
	}
	again, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = again.Write(whole)
	}
	if err = errors.Join(err, again.Close()); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Next(t.Context()); err != nil || len(e.Request.Body) != 10<<10 {
		t.Errorf("after it was mended: %+v %v", e, err)
	}
	closed(t, f)
}
