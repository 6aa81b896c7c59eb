package tidegate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// The text of a receipt is a name: all that is needed to settle, and nothing else.
func TestReceiptText(t *testing.T) {
	h := tidegate.NewHandle()
	f := func(r, want tidegate.Receipt) {
		t.Helper()
		text, err := r.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got := tidegate.Receipt{At: 99}
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Errorf("%+v is written %q and read %+v, %v; want %+v", r, text, got, err, want)
		}
		if trimmed := strings.Trim(string(text), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"); trimmed != "" {
			t.Errorf("%q has %q in it", text, trimmed)
		}
	}
	f(tidegate.Receipt{}, tidegate.Receipt{})
	f(tidegate.Receipt{At: 7, Instance: 5}, tidegate.Receipt{}) // it names nothing
	f(tidegate.Receipt{Handle: h}, tidegate.Receipt{Handle: h})
	f(tidegate.Receipt{Handle: h, At: 12345, Apart: &tidegate.Apart{At: map[string]int64{"user=ann": 1}}}, tidegate.Receipt{Handle: h})
	whole := tidegate.Receipt{Handle: h, Instance: 1<<64 - 1, Place: 16383, Origin: tidegate.OriginLocal}
	f(whole, whole)
	f(tidegate.Receipt{Handle: tidegate.Handle{0, 1}}, tidegate.Receipt{Handle: tidegate.Handle{0, 1}})
}

func TestGarbageIsNoReceipt(t *testing.T) {
	text, err := tidegate.Receipt{Handle: tidegate.NewHandle(), Instance: 1}.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for _, bad := range []string{
		"x", "tr1_", "tr2_" + good[4:], "TR1_" + good[4:], good[1:], good[:len(good)-1], good + "A", good + "\n", " " + good,
		good[:10] + "\n" + good[11:], good[:10] + "=" + good[11:], good[:10] + "+" + good[11:], good[:39] + "\x00",
		"tr1_" + strings.Repeat("A", 36), // the handle is zero
		"tr1_" + strings.Repeat("_", 36), // no such origin
		"id{user=ann}", "null", "0", strings.Repeat("tr1_", 10),
	} {
		kept := tidegate.Receipt{At: 7}
		if err := kept.UnmarshalText([]byte(bad)); err == nil || kept != (tidegate.Receipt{At: 7}) {
			t.Errorf("%q was read as %+v, %v", bad, kept, err)
		}
	}
}

func FuzzReceipt(f *testing.F) {
	for _, r := range []tidegate.Receipt{{}, {Handle: tidegate.Handle{1, 2}, Place: 3}, {Handle: tidegate.Handle{5, 6}, Instance: 7, Origin: tidegate.OriginLocal}} {
		text, _ := r.MarshalText()
		f.Add(text)
	}
	f.Add([]byte("tr1_" + strings.Repeat("A", 35) + "B"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r tidegate.Receipt
		if r.UnmarshalText(text) != nil {
			return
		}
		if again, err := r.MarshalText(); err != nil || string(again) != string(text) {
			t.Errorf("%q is read as %+v and written %q, %v", text, r, again, err)
		}
	})
}

// A decision can be logged as JSON, whatever its receipt.
func TestDecisionAsJSON(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(100))
	for _, d := range []tidegate.Decision{lim.Allow(t.Context(), "ann"), lim.Reserve(t.Context(), "ann", 5).Decision} {
		text, err := json.Marshal(d.Receipt)
		var back tidegate.Receipt
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back.Handle != d.Receipt.Handle {
			t.Errorf("%+v as JSON is %s and %+v, %v", d.Receipt, text, back, err)
		}
	}
}

// Handles are not counted up, and copies of one are not those of another.
func TestHandlesCannotBeGuessed(t *testing.T) {
	seen := map[uint64]bool{}
	for range 1000 {
		h := tidegate.NewHandle()
		if h.IsZero() || seen[h[0]] || seen[h[1]] {
			t.Fatalf("handle %s", h)
		}
		seen[h[0]], seen[h[1]] = true, true
		if h.Copy(0) != h || h.Copy(3) == h || h.Copy(3)[0] != h[0] {
			t.Fatalf("copies of %s: %s, %s", h, h.Copy(0), h.Copy(3))
		}
	}
}

// Whoever has the receipt settles, once: the reservation itself, or another with the text.
func TestSettleByReceipt(t *testing.T) {
	store := memory.New()
	lim := tidegate.New(store, tidegate.PerHour(100))
	r := lim.Reserve(t.Context(), "ann", 60)
	text, err := r.Receipt.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var handedOn tidegate.Receipt
	if err := handedOn.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	elsewhere := tidegate.New(memory.New(), tidegate.PerHour(100))
	if err := elsewhere.Settle(t.Context(), handedOn, 10); !errors.Is(err, tidegate.ErrElsewhere) {
		t.Errorf("settled at another store: %v", err)
	}
	wantLeft(t, lim, "ann", 40)
	if err := tidegate.New(store).Settle(t.Context(), handedOn, 10); err != nil {
		t.Error(err)
	}
	wantLeft(t, lim, "ann", 90)
	for _, again := range []error{lim.Settle(t.Context(), handedOn, 0), r.Settle(0), lim.Settle(t.Context(), tidegate.Receipt{}, 0)} {
		if !errors.Is(again, tidegate.ErrSettled) {
			t.Errorf("settled twice: %v", again)
		}
	}
	wantLeft(t, lim, "ann", 90)
	plain := tidegate.New(struct{ tidegate.Store }{store}, tidegate.PerHour(100))
	if err := plain.Settle(t.Context(), handedOn, 0); !errors.Is(err, tidegate.ErrUnsupported) {
		t.Errorf("settled at a store without reservations: %v", err)
	}
	negative := lim.Reserve(t.Context(), "bob", 60)
	if err := lim.Settle(t.Context(), negative.Receipt, -7); err != nil { // less than nothing is nothing
		t.Error(err)
	}
	wantLeft(t, lim, "bob", 100)
}

// After a restart from a snapshot the estimates of before stay charged, and are said to be
// another's.
func TestReceiptOfBeforeARestart(t *testing.T) {
	store := memory.New()
	limit := tidegate.PerDay(100)
	r := tidegate.New(store, limit).Reserve(t.Context(), "ann", 60)
	file := t.TempDir() + "/snapshot"
	if err := store.Snapshot(file); err != nil {
		t.Fatal(err)
	}
	restored, err := memory.Restore(file, memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim := tidegate.New(restored, limit)
	if err := lim.Settle(t.Context(), r.Receipt, 0); !errors.Is(err, tidegate.ErrElsewhere) {
		t.Errorf("settled: %v", err)
	}
	if left := lim.Peek(t.Context(), "ann").Remaining; left != 40 {
		t.Errorf("%d left, want 40", left)
	}
}
