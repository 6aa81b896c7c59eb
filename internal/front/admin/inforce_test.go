package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/rules/source"
)

var (
	noon    = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	refused = &RefusedRules{Revision: "43", Since: noon, Message: "rules.yaml:3:5: limits is not valid"}
)

// on is an instance with one layer.
func on(name, hash string, l Layer) InForce {
	if l.Name == "" {
		l.Name = "redis://r#rules"
	}
	if l.Since.IsZero() {
		l.Since = noon
	}
	if l.Reached.IsZero() && !l.Copy {
		l.Reached = noon.Add(time.Minute)
	}
	return InForce{ID: "id-" + name, Name: name, Hash: hash, Since: l.Since, Layers: []Layer{l}}
}

// Who is behind, and why, as an operator reads it.
func TestCombineReports(t *testing.T) {
	now := noon.Add(90 * time.Second)
	f := func(what string, want []string, all ...InForce) {
		t.Helper()
		is := CombineReports(all, now)
		if got := is.Warnings; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", what, got, want)
		}
		if is.Current != (len(want) == 0) || len(is.Instances) != len(all) {
			t.Errorf("%s: %+v", what, is)
		}
	}
	a, b := on("a", "aa", Layer{Revision: "42"}), on("b", "aa", Layer{Revision: "42"})
	f("nobody", nil)
	f("one", nil, a)
	f("two alike", nil, a, b)
	f("an older one", []string{`c is behind: it runs revision 9 of redis://r#rules, and revision 42 is in force elsewhere since 12:00:00 UTC`},
		a, b, on("c", "cc", Layer{Revision: "9", Since: noon.Add(time.Minute)}))
	f("the newest is on one of three", []string{
		`a is behind: it runs revision 42 of redis://r#rules, and revision 100 is in force elsewhere since 12:01:00 UTC`,
		`b is behind: it runs revision 42 of redis://r#rules, and revision 100 is in force elsewhere since 12:01:00 UTC`,
	}, a, b, on("c", "cc", Layer{Revision: "100", Since: noon.Add(time.Minute)}))
	f("revisions that are not numbers: the last to come counts", []string{`a is behind: it runs revision "z" of redis://r#rules, and revision "b" is in force elsewhere since 12:01:00 UTC`},
		on("a", "aa", Layer{Revision: `"z"`}), on("b", "bb", Layer{Revision: `"b"`, Since: noon.Add(time.Minute)}))
	f("numbers with a hash", []string{`a is behind: it runs revision 9-ffff0000 of redis://r#rules, and revision 10-00001111 is in force elsewhere since 12:00:00 UTC`},
		on("a", "aa", Layer{Revision: "9-ffff0000", Since: noon.Add(time.Minute)}), on("b", "bb", Layer{Revision: "10-00001111"}))
	f("cut off", []string{`c is behind: redis://r#rules has not answered it for 30s: dial tcp: refused`},
		a, b, on("c", "aa", Layer{Revision: "42", Error: "dial tcp: refused"}))
	f("cut off, and an older one, loaded last", []string{
		`c is behind: it runs revision "1" of redis://r#rules, and revision "2" is in force elsewhere since 12:00:00 UTC; redis://r#rules has not answered it for 30s: timeout`,
	}, on("a", "aa", Layer{Revision: `"2"`}), on("c", "cc", Layer{Revision: `"1"`, Since: noon.Add(time.Minute), Error: "timeout"}))
	f("the source is away for all", []string{
		`a is behind: redis://r#rules has not answered it for 30s: timeout`,
		`b is behind: redis://r#rules has not answered it for 30s: timeout`,
	}, on("a", "aa", Layer{Revision: "42", Error: "timeout"}), on("b", "aa", Layer{Revision: "42", Error: "timeout"}))
	f("never answered", []string{`a is behind: x has never answered it: timeout`}, InForce{Name: "a", Layers: []Layer{{Name: "x", Error: "timeout"}}})
	f("a copy", []string{`c is behind: it runs revision 41 of redis://r#rules, and revision 42 is in force elsewhere since 12:00:00 UTC; it runs the copy on its disk: redis://r#rules has not answered since it started: timeout`},
		a, on("c", "cc", Layer{Revision: "41", Since: noon.Add(time.Minute), Copy: true, Error: "timeout"}))
	f("refused everywhere", []string{
		`a is behind: it refuses revision 43 of redis://r#rules and goes on with revision 42`,
		`b is behind: it refuses revision 43 of redis://r#rules and goes on with revision 42`,
	}, on("a", "aa", Layer{Revision: "42", Refused: refused}), on("b", "aa", Layer{Revision: "42", Refused: refused}))
	f("no answer", []string{`it is not known what b runs: it did not answer in time`}, a, InForce{Name: "b", Unanswered: "it did not answer in time"})
	f("followers", []string{`f is behind: it has not asked for 5m0s`},
		a, InForce{Name: "e", Follows: true, Hash: "ee", Layers: []Layer{{Name: "/rules/bundle", Revision: "1"}}},
		InForce{Name: "f", Follows: true, Hash: "ee", Behind: []string{"it has not asked for 5m0s"}, Layers: []Layer{{Name: "/rules/bundle", Revision: "1"}}})
	f("another source", []string{`b follows file.yaml, and a follows redis://r#rules: their rules differ`}, a, on("b", "bb", Layer{Name: "file.yaml", Revision: "42"}))
	f("the same revision of other files", []string{`the rules of b (bb) and of a (aa) differ, although their sources say the same`}, a, on("b", "bb", Layer{Revision: "42"}))
	long := strings.Repeat("0123456789abcdef", 4)
	f("files", []string{`a is behind: it runs revision 0123456789abcdef of rules.yaml, and revision fedcba9876543210 is in force elsewhere since 12:01:00 UTC`},
		on("a", long, Layer{Name: "rules.yaml", Revision: long}),
		on("b", "bb", Layer{Name: "rules.yaml", Revision: "fedcba9876543210" + long[:48], Since: noon.Add(time.Minute)}))
}

// A message that instances share is told once, with all of them; another one apart.
func TestRefusals(t *testing.T) {
	later, other := *refused, *refused
	later.Since, other.Message = noon.Add(time.Second), "another"
	is := CombineReports([]InForce{
		on("a", "aa", Layer{Revision: "42", Refused: &later}), on("b", "aa", Layer{Revision: "42", Refused: refused}),
		on("c", "aa", Layer{Revision: "42", Refused: &other}), on("d", "aa", Layer{Revision: "42"}),
	}, noon)
	want := []Refusal{
		{Layer: "redis://r#rules", Revision: "43", Message: refused.Message, Since: noon, On: []string{"a", "b"}},
		{Layer: "redis://r#rules", Revision: "43", Message: "another", Since: noon, On: []string{"c"}},
	}
	if !reflect.DeepEqual(is.Refusals, want) {
		t.Errorf("%+v", is.Refusals)
	}
	if want := []Newest{{Name: "redis://r#rules", Revision: "42", Since: noon, On: 4, Of: 4}}; !reflect.DeepEqual(is.Layers, want) {
		t.Errorf("%+v", is.Layers)
	}
}

// What an instance says fits an answer of the board, however much it has to say, and is cut
// alike everywhere. It has nothing that a terminal would obey.
func TestInForceIsBounded(t *testing.T) {
	for _, layers := range []int{0, 1, 2, 7, 32, 500} {
		is := InForce{Name: strings.Repeat("n", 5000)}
		for i := range layers {
			is.Layers = append(is.Layers, Layer{
				Name: fmt.Sprint(i, strings.Repeat("é", 3000)), Revision: strings.Repeat("r", 3000), Author: "\x1b[2Jann\xff", Reason: strings.Repeat("\"", 500), Error: strings.Repeat("\"\n", 9000),
				Refused: &RefusedRules{Revision: "\t", Message: strings.Repeat("\\\"<", 9000)},
			})
		}
		text := is.Answer()
		var again InForce
		if err := json.Unmarshal(text, &again); err != nil || len(text) > board.MaxAnswerBody {
			t.Errorf("%d layers: %d bytes, %v", layers, len(text), err)
		}
		if again.Bound(); !reflect.DeepEqual(again, is) {
			t.Errorf("%d layers are cut twice", layers)
		}
		if !utf8.Valid(text) || strings.Contains(string(text), "\\u001b") || strings.Contains(string(text), "\\ufffd") {
			t.Errorf("%d layers: %.300s", layers, text)
		}
	}
}

// The endpoint asks every instance, shows those that do not answer with what their heartbeat
// said, and does not believe an answer about itself.
func TestRulesStatus(t *testing.T) {
	own := InForce{ID: "self", Version: "v1", Hash: "aa", Rules: 3, Instances: 2, Layers: []Layer{{Name: "rules.yaml", Revision: "aa", Since: noon, Refused: refused}}}
	d := newDesk(t, few, func(o *Options) {
		o.InForce = func() InForce { return own }
		o.Followers = func() []InForce { return []InForce{{Name: "edge-1", Follows: true, Hash: "aa"}} }
		o.Board = &answering{o.Board, map[board.Node][]byte{
			{ID: "self", Name: "web-1"}: mustJSON(t, own),
			{ID: "b", Name: "web-2"}:    []byte(`{"id":"forged","self":true,"hash":"bb\u001b","behind":["no"],"rules":1,"instances":0}`),
			{ID: "c", Name: "web-3"}:    []byte(`{`),
		}, []board.Absent{{Node: board.Node{ID: "d", Name: "web-4"}, Why: "it did not answer in time"}}}
		o.Fleet = func(context.Context) (Fleet, error) {
			return Fleet{Instances: []Instance{{ID: "d", Known: true, Version: "v0", Rules: "0123"}, {ID: "self", Rules: "zz"}}}, nil
		}
	})
	w := d.ask("GET", "/rules/status", "")
	var is RulesStatus
	if err := json.Unmarshal(w.Body.Bytes(), &is); w.Code != 200 || err != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := []InForce{
		{ID: "self", Name: "web-1", Self: true, Version: "v1", Hash: "aa", Rules: 3, Instances: 2, Layers: own.Layers, Behind: []string{"it refuses revision 43 of rules.yaml and goes on with revision aa"}},
		{ID: "b", Name: "web-2", Hash: "bb?", Rules: 1},
		{ID: "c", Name: "web-3", Unanswered: "its answer cannot be read"},
		{ID: "d", Name: "web-4", Version: "v0", Hash: "0123", Unanswered: "it did not answer in time"},
		{Name: "edge-1", Follows: true, Hash: "aa"},
	}
	if !reflect.DeepEqual(is.Instances, want) || is.Current || len(is.Refusals) != 1 || is.Refusals[0].On[0] != "web-1" {
		t.Errorf("got  %+v\nwant %+v\n%+v", is.Instances, want, is)
	}

	alone := newDesk(t, few, func(o *Options) {
		o.InForce, o.Board = func() InForce { return own }, nil
	})
	if w := alone.ask("GET", "/rules/status", ""); w.Code != 200 || !strings.Contains(compact(t, w.Body.Bytes()), `"self":true`) {
		t.Errorf("alone: %d %s", w.Code, w.Body)
	}
	problem(t, newDesk(t, few, nil).ask("GET", "/rules/status", ""), http.StatusNotFound, "no rules")
}

// answering is a board on which others answer.
type answering struct {
	Board
	answers map[board.Node][]byte
	missing []board.Absent
}

func (a *answering) Ask(context.Context, string, []byte) (map[board.Node][]byte, []board.Absent, error) {
	return a.answers, a.missing, nil
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// past is a history that may fail.
type past struct {
	sets []*source.Bundle
	err  error
}

func (p *past) History(context.Context) (all []source.Edition, err error) {
	for _, b := range p.sets {
		all = append(all, b.Edition)
	}
	return all, p.err
}

func (p *past) Get(_ context.Context, hash string) (*source.Bundle, error) {
	for _, b := range p.sets {
		if b.Hash == hash {
			return b, nil
		}
	}
	return nil, errors.Join(p.err, source.ErrNoRevision)
}

// The history lists what was in force, marks what is, and gives files back as they were.
func TestRulesHistory(t *testing.T) {
	h := &past{}
	d := newDesk(t, few, func(o *Options) { o.History = h })
	d.rules.status.Hash = "aabbcc"
	if w := d.ask("GET", "/rules/history", ""); compact(t, w.Body.Bytes()) != `{"sets":[]}` {
		t.Errorf("none: %s", w.Body)
	}
	h.sets = []*source.Bundle{
		{Edition: source.Edition{Hash: "aabbcc", Revision: "7", Author: "ann", Reason: "more", At: noon}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte("version: 1\n"), "l": {0xff, 0}}},
		{Edition: source.Edition{Hash: "ddeeff", At: noon.Add(-time.Hour)}},
	}
	if w := d.ask("GET", "/rules/history", ""); compact(t, w.Body.Bytes()) != `{"sets":[{"hash":"aabbcc","revision":"7","author":"ann","reason":"more","since":"2026-11-16T12:00:00Z","in_force":true},{"hash":"ddeeff","since":"2026-11-16T11:00:00Z"}]}` {
		t.Errorf("two: %s", w.Body)
	}
	if w := d.ask("GET", "/rules/history/files?hash=aabbcc", ""); compact(t, w.Body.Bytes()) != `{"hash":"aabbcc","revision":"7","author":"ann","reason":"more","since":"2026-11-16T12:00:00Z","in_force":true,"main":"rules.yaml","files":{"rules.yaml":"version: 1\n"},"binary":{"l":"/wA="}}` {
		t.Errorf("files: %s", w.Body)
	}
	problem(t, d.ask("GET", "/rules/history/files?hash=xx", ""), http.StatusNotFound, `"xx"`)
	problem(t, d.ask("GET", "/rules/history/files", ""), http.StatusNotFound, "how it begins")
	problem(t, d.ask("GET", "/rules/history/files?revision=7", ""), http.StatusBadRequest, "there are hash")
	h.err = errors.New("redis is away")
	if w := d.ask("GET", "/rules/history", ""); w.Code != 200 || !strings.Contains(compact(t, w.Body.Bytes()), `"incomplete":"redis is away"`) {
		t.Errorf("away: %s", w.Body)
	}
	h.sets = nil
	problem(t, d.ask("GET", "/rules/history", ""), http.StatusServiceUnavailable, "redis is away")
	problem(t, newDesk(t, few, nil).ask("GET", "/rules/history", ""), http.StatusNotFound, "no history")
}
