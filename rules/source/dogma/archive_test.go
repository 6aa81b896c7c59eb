package dogma

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

func of(reason string, files map[string]string) *source.Bundle {
	b := &source.Bundle{Edition: source.Edition{Author: "bob", Reason: reason}, Files: make(map[string][]byte)}
	for name, text := range files {
		b.Files[name] = []byte(text)
	}
	return b
}

// What is published is the newest revision, in the history with author and reason, and can be
// had again; what another has published meanwhile is not lost.
func TestPublish(t *testing.T) {
	s := newStand(t)
	s.Commit("elsewhere", map[string]string{"/other/rules.yaml": "# other\n"})
	is := s.source("/team/")
	publish := func(b *source.Bundle, head string) string {
		t.Helper()
		revision, err := is.Publish(t.Context(), b, head)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	one := publish(of("open the shop", map[string]string{"a.yaml": "# 1\n", "lists/x.txt": "x\n", "n.json": `{"a":1}`}), "")
	reader := s.source("/team/")
	b := next(t, reader, "")
	if b.Revision != one || b.Author != "bob" || b.Reason != "open the shop" || text(b) != "a.yaml=# 1 | lists/x.txt=x | n.json={\n  \"a\": 1\n}" {
		t.Errorf("%+v", b)
	}
	s.Commit("elsewhere", map[string]string{"/other/rules.yaml": "# other again\n"})
	// The head of the rules has a new number in the repository, and is known by that.
	now := next(t, s.source("/team/"), "")
	two := publish(of("sale", map[string]string{"a.yaml": "# 2\n", "n.json": `{"a":1}`}), now.Revision)
	if b = next(t, reader, b.Revision); text(b) != "a.yaml=# 2 | n.json={\n  \"a\": 1\n}" {
		t.Errorf("%s", text(b))
	}
	if _, err := is.Publish(t.Context(), of("late", map[string]string{"a.yaml": "# 3\n"}), one); !errors.Is(err, source.ErrConflict) {
		t.Errorf("against an old head: %v", err)
	}
	if revision := publish(of("the same", map[string]string{"a.yaml": "# 2\n", "n.json": "{\n  \"a\": 1\n}\n"}), two); revision != two {
		t.Errorf("the same again is revision %s", revision)
	}
	if _, err := is.Publish(t.Context(), of("bad", map[string]string{"x.json": "a: 1\n"}), two); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("YAML as JSON: %v", err)
	}
	all, err := is.History(t.Context())
	if err != nil || len(all) != 2 || all[0].Revision != two || all[0].Reason != "sale" || all[1].Revision != one || all[1].Author != "bob" || all[1].At.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	old, err := is.Get(t.Context(), one)
	if err != nil || text(old) != "a.yaml=# 1 | lists/x.txt=x | n.json={\n  \"a\": 1\n}" || old.Revision != one || old.Reason != "open the shop" {
		t.Errorf("%+v, %v", old, err)
	}
	back := publish(old, two)
	if b = next(t, reader, b.Revision); b.Revision != back || text(b) != text(old) {
		t.Errorf("after a rollback: %s", text(b))
	}
	for _, bad := range []string{"99", "0", "-1", "x", ""} {
		if b, err := is.Get(t.Context(), bad); !errors.Is(err, source.ErrNoRevision) {
			t.Errorf("revision %q: %+v, %v", bad, b, err)
		}
	}
}

// The head that the history names is one to publish on, whatever else was committed to the
// repository since.
func TestPublishOnTheHeadOfTheHistory(t *testing.T) {
	s := newStand(t)
	is := s.source("/team/")
	head := ""
	for i := range 3 {
		if _, err := is.Publish(t.Context(), of(fmt.Sprint(i), map[string]string{"a.yaml": fmt.Sprintf("# %d\n", i)}), head); err != nil {
			t.Fatal(err)
		}
		s.Commit("elsewhere", map[string]string{"/other/rules.yaml": fmt.Sprintf("# %d\n", i)})
		all, err := is.History(t.Context())
		if err != nil || len(all) != i+1 || all[0].Reason != fmt.Sprint(i) {
			t.Fatalf("%+v, %v", all, err)
		}
		head = all[0].Revision
	}
	all, err := is.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{all[1].Revision, "1", "99", "", "x"} {
		if _, err := is.Publish(t.Context(), of("late", map[string]string{"a.yaml": "# late\n"}), old); !errors.Is(err, source.ErrConflict) {
			t.Errorf("on revision %q: %v", old, err)
		}
	}
}

// Whoever loses a race is told, and nothing of theirs is there.
func TestPublishRace(t *testing.T) {
	s := newStand(t)
	first := s.Commit("first", map[string]string{"/rules.yaml": "# 0\n"})
	is := s.source("/rules.yaml")
	s.setHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" {
			s.Commit("faster", map[string]string{"/rules.yaml": "# faster\n"})
		}
		return false
	})
	mine := of("mine", map[string]string{"rules.yaml": "# mine\n"})
	mine.Main = "rules.yaml"
	if _, err := is.Publish(t.Context(), mine, strconv.Itoa(first)); !errors.Is(err, source.ErrConflict) {
		t.Errorf("%v", err)
	}
	s.setHook(nil)
	if b := next(t, is, ""); text(b) != "rules.yaml=# faster" {
		t.Errorf("%s", text(b))
	}
	other := of("other", map[string]string{"other.yaml": "# x\n"})
	if _, err := is.Publish(t.Context(), other, "3"); err == nil || !strings.Contains(err.Error(), "one rule file") {
		t.Errorf("a folder into a file: %v", err)
	}
}

// The history has the last twenty revisions.
func TestHistoryIsBounded(t *testing.T) {
	s := newStand(t)
	for i := range 30 {
		s.Commit(fmt.Sprint(i), map[string]string{"/rules.yaml": fmt.Sprintf("# %d\n", i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all, err := s.source("/rules.yaml").History(ctx)
	if err != nil || len(all) != source.Kept || all[0].Reason != "29" {
		t.Errorf("%d, %v", len(all), err)
	}
}

// Layers have no place in a folder: that is told, and nothing is published.
func TestPublishOfLayers(t *testing.T) {
	s := newStand(t)
	is := s.source("/team/")
	b := of("layers", map[string]string{"1/rules.yaml": "# 1\n", "2/rules.yaml": "# 2\n"})
	b.Main, b.Over = "1/", []string{"2/"}
	if _, err := is.Publish(t.Context(), b, ""); err == nil || !strings.Contains(err.Error(), "in a folder of its own") {
		t.Errorf("%v", err)
	}
	if _, err := is.Publish(t.Context(), of("nothing", nil), ""); err == nil || !strings.Contains(err.Error(), "without files") {
		t.Errorf("%v", err)
	}
	if all, err := is.History(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
