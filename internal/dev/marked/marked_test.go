package marked

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const begin, end = "<!-- table:begin -->", "<!-- table:end -->"

func TestUpdate(t *testing.T) {
	page := "before\n" + begin + "\nold\n" + end + "\nafter\n"
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Update(file, "table", "\nnew\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestUpdateWantsItsMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for _, bad := range []string{"", begin, end + begin, "<!-- other:begin --><!-- other:end -->"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Update(file, "table", "new"); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q has no place for a table: error %v", bad, err)
		}
		if got, _ := os.ReadFile(file); string(got) != bad {
			t.Errorf("%q became %q", bad, got)
		}
	}
	if err := Update(file+".none", "table", "new"); err == nil {
		t.Error("a file that is not there, and no error")
	}
}
