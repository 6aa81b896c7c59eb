package board

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// With a file, a record is there after a restart, as it was answered; a file that cannot be
// read is an error, and one that cannot be written is told.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	open := func() *Board {
		t.Helper()
		b, err := Open(Options{File: file})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	b := open()
	until := time.Now().Add(time.Hour)
	for _, r := range []Record{{ID: "a", Body: []byte("1")}, {ID: "b", Body: []byte(`{"x":"\u0000é<"}`), Expires: until}, {ID: "c"}} {
		if reach, err := b.Put(t.Context(), r); err != nil || !slices.Equal(reach.Kept, []string{InFile}) {
			t.Errorf("%s, %v", &reach, err)
		}
	}
	if _, err := b.End(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again := open() // the first one was not closed: what was answered is on disk
	if got := bodies(again); got != `a=1 b={"x":"\u0000é<"}` {
		t.Errorf("after a restart: %s", got)
	}
	if all := again.All(); !all[1].Expires.Equal(until.Truncate(time.Millisecond)) {
		t.Errorf("it ends at %s", all[1].Expires)
	}
	if left, _ := filepath.Glob(file + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"cut off": string(text[:len(text)/2]), "empty": "", "of another kind": "[]", "of a later version": `{"tidegate_state":2,"records":[]}`,
		"no rev": strings.Replace(string(text), `"rev":`, `"revision":`, 1), "an id": strings.Replace(string(text), `"id":"a"`, `"id":"A"`, 1),
	} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{File: file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a file that is %s: %v", name, err)
		}
	}
	if _, err := Open(Options{File: dir}); err == nil {
		t.Error("a folder was read")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if reach, err := again.Put(t.Context(), Record{ID: "d"}); err != nil || len(reach.Kept) > 0 || !strings.Contains(reach.Why, "write what operators have ordered") {
		t.Errorf("without a folder: %s, %v", &reach, err)
	}
	if got := bodies(again); !strings.Contains(got, "d=") {
		t.Error("it does not hold here")
	}
}

// A successor has all records, and the file from then on.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kept := range []string{"", filepath.Join(t.TempDir(), "state")} {
			handed := filepath.Join(t.TempDir(), "handed")
			old, err := Open(Options{File: kept})
			if err != nil {
				t.Fatal(err)
			}
			heir, err := Open(Options{File: kept}) // prepared before the last order
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.Put(t.Context(), Record{ID: "a", Body: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			if err := old.HandOver(handed); err != nil {
				t.Fatal(err)
			}
			if _, err := old.Put(t.Context(), Record{ID: "b"}); !errors.Is(err, ErrClosed) {
				t.Errorf("an order after the handover: %v", err)
			}
			if err := heir.TakeOver(handed); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(handed); err == nil {
				t.Error("the file is left behind")
			}
			if got := bodies(heir); got != "a=1" {
				t.Errorf("the successor has %q", got)
			}
			old.Resume()
			if _, err := old.Put(t.Context(), Record{ID: "b"}); err != nil {
				t.Errorf("an order after nobody took over: %v", err)
			}
			old.Close()
			heir.Close()
		}
	})
}
