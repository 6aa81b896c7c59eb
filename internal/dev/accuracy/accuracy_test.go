package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/marked"
)

// small is a run of a few clients for a little while.
func small(seed uint64, workers int) []result {
	return measure(contestants(), shapes(0.03), 0.0005, seed, workers, io.Discard)
}

var once = sync.OnceValue(func() []result { return small(1, 1) })

func TestSameNumbersOnAnyCores(t *testing.T) {
	first := report(contestants(), once())
	if again := report(contestants(), small(1, 5)); again != first {
		t.Errorf("five workers report\n%s\none reports\n%s", again, first)
	}
	if other := report(contestants(), small(2, 5)); other == first {
		t.Error("another seed gives the same numbers")
	}
}

func TestBoundsOfEachAlgorithm(t *testing.T) {
	cs := contestants()
	for _, r := range once() {
		for i, sc := range r.scores {
			name := r.shape.name + ", " + cs[i].name
			if sc.most > 2*events {
				t.Errorf("%s: %d in a window, above twice the limit", name, sc.most)
			}
			if cs[i].spec.Ceiling && (sc.most > events || sc.wrongAllow > 0) {
				t.Errorf("%s: %d in a window and %d wrongly admitted: a ceiling is never over", name, sc.most, sc.wrongAllow)
			}
			if cs[i].short == "token L/10" && sc.most > events+events/10 {
				t.Errorf("%s: %d in a window, above burst + limit", name, sc.most)
			}
			if cs[i].short == "log" && (sc.wrongAllow+sc.wrongDeny > 0 || sc.admitted != r.exact) {
				t.Errorf("%s: %+v, while an exact log admits %d: it is one", name, sc, r.exact)
			}
		}
	}
}

// A part lets at most its own length go too early: in a window shorter by one
// part, interpolated sub-windows are never over.
func TestSubWindowsAreWrongByOnePart(t *testing.T) {
	for _, c := range contestants() {
		if !strings.HasPrefix(c.short, "sub ") {
			continue
		}
		span := window - window/int64(c.spec.Parts)
		for _, s := range shapes(0.03) {
			traffic := newTraffic(1, s.name, 0, nil)
			s.make(traffic)
			if most := mostWithin(span, newGate(c), traffic.sorted()); most > events {
				t.Errorf("%s under %s: %d within %d µs", c.name, s.name, most, span)
			}
		}
	}
}

func mostWithin(span int64, g gate, requests []int64) (most int) {
	var admitted []int64
	for _, us := range requests {
		if !g.take(us) {
			continue
		}
		admitted = append(admitted, us)
		for admitted[0] <= us-span {
			admitted = admitted[1:]
		}
		most = max(most, len(admitted))
	}
	return most
}

func TestHistoryJudges(t *testing.T) {
	var h history
	for range 3 {
		h.admit(start)
	}
	f := func(us, want int64) {
		t.Helper()
		if got := h.inWindow(us); got != want {
			t.Errorf("%d µs later: %d in the window, want %d", us-start, got, want)
		}
	}
	f(start, 3)
	f(start+window-1, 3)
	f(start+window, 0) // the window is (now-T, now]
}

func TestRunWritesPlotsAndTables(t *testing.T) {
	dir := t.TempDir()
	results := once()
	if err := writePlots(dir, results); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("plots: %v, %v", files, err)
	}
	for _, file := range files {
		wellFormed(t, file)
	}
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("<!-- accuracy:begin --><!-- accuracy:end -->"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := marked.Update(page, "accuracy", report(contestants(), results)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "| mostly quiet") {
		t.Errorf("page has no tables: %q, %v", text, err)
	}
}

func wellFormed(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(file), err)
		}
	}
}

// The page shows plots by name and holds the tables: neither may get lost.
func TestPageShowsThePlots(t *testing.T) {
	const page = "../../../docs/algorithms.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := marked.Update(copied, "accuracy", ""); err != nil {
		t.Errorf("%s: %v", page, err)
	}
	images := regexp.MustCompile(`\]\((img/[^)]+)\)`).FindAllStringSubmatch(string(text), -1)
	if len(images) == 0 {
		t.Errorf("%s shows no plots", page)
	}
	for _, image := range images {
		if _, err := os.Stat(filepath.Join("../../../docs", image[1])); err != nil {
			t.Errorf("%s shows %s: %v", page, image[1], err)
		}
	}
}
