package screen

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Whatever the sizes, a picture has no more lines than the window has rows, and it is told how many
// are missing.
func TestFit(t *testing.T) {
	for lines := 1; lines <= 30; lines++ {
		var all []string
		for i := range lines {
			all = append(all, fmt.Sprint("line ", i))
		}
		picture := strings.Join(all, "\n") + "\n"
		for rows := 1; rows <= 35; rows++ {
			got := fit(picture, rows)
			if lines <= rows {
				if strings.Join(got, "\n")+"\n" != picture {
					t.Errorf("%d lines in %d rows: %q", lines, rows, got)
				}
				continue
			}
			want := append(all[:rows-1:rows-1], fmt.Sprintf("… %d more lines", lines-rows+1))
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d lines in %d rows: %q", lines, rows, got)
			}
		}
	}
}

// What is not a terminal is not taken over, and nothing is written to it.
func TestOpenWithoutTerminal(t *testing.T) {
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer w.Close()
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := Open(in, out, func() { t.Error("quit") }); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	if info, err := out.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v: %d bytes were written", err, info.Size())
	}
}
