package ruletest

import (
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
	"tidegate.dev/tidegate/rules"
)

// midnight is when a case without a start begins: any day will do.
var midnight = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// The clock of a case runs from firstInstant to lastInstant: beyond them, the clock of the counters
// stands still.
var (
	firstInstant = time.Unix(0, 0)
	lastInstant  = time.Date(2250, time.January, 1, 0, 0, 0, 0, time.UTC)
)

const (
	maxTimes = 1_000_000
	maxCost  = 1 << 28
)

// Read reads a test file. The file is nil if there are errors.
func Read(name string) (*File, rules.Problems) {
	src, err := bounded.ReadFile(name, yamltree.MaxSize)
	if err != nil {
		return nil, diag.List{{Pos: diag.Pos{File: name, Line: 1, Col: 1}, Message: fmt.Sprintf("cannot read the test file: %v", err)}}
	}
	return parse(name, src)
}

// parse is Read for a file in memory.
func parse(name string, src []byte) (*File, rules.Problems) {
	root, problems := yamltree.Parse(name, src)
	r := reader{lines: strings.Split(string(src), "\n"), problems: problems}
	f := &File{Name: name, lines: r.lines}
	if root != nil && !problems.HasErrors() {
		r.file(f, root)
	}
	r.problems = r.problems.Bounded()
	r.problems.Sort()
	if r.problems.HasErrors() {
		return nil, r.problems
	}
	return f, r.problems
}

func (r *reader) file(f *File, n *yamltree.Node) {
	if n.Kind == yamltree.Map && len(n.Fields) > 0 && n.Fields[0].Key.Value == "version" {
		r.bad(n.Pos, "this is a rule file, not a test of one", "name its test, such as `rules_test.yaml`; `tidegate lint` checks a rule file")
		return
	}
	r.fields(n, "a test file",
		field{"rules", someTexts, func(n *yamltree.Node) {
			layers := []*yamltree.Node{n}
			if n.Kind == yamltree.List {
				layers = n.Items
			}
			for _, item := range layers {
				f.Layers = append(f.Layers, r.path(f, item))
			}
			f.Rules = strings.Join(f.Layers, ", ")
		}},
		field{"cases", some("a case"), func(n *yamltree.Node) {
			for _, item := range items(n) {
				f.cases = append(f.cases, r.testCase(f, item))
			}
		}},
	)
	switch {
	case n.Kind != yamltree.Map:
	case f.Rules == "":
		r.bad(n.Pos, "the test does not say what it tests", "write, for example, `rules: rules.yaml` first")
	case len(f.cases) == 0:
		r.bad(n.Pos, "there are no cases", "write `cases:` and below it `- name: …` with `steps:`")
	}
}

// path reads the name of a rule file or folder, which is relative to the test file.
func (r *reader) path(f *File, n *yamltree.Node) string {
	name := r.text(n, "write the path of the rule file, from here")
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.Name), name)
}

func (r *reader) testCase(f *File, n *yamltree.Node) scenario {
	c := scenario{Pos: n.Pos, Start: midnight}
	r.fields(n, "a case",
		field{"name", aText, func(n *yamltree.Node) { c.Name = r.text(n, "write a sentence that says what is to hold") }},
		field{"start", anInstant, func(n *yamltree.Node) { c.Start = r.instant(n) }},
		field{"steps", some("a step"), func(n *yamltree.Node) {
			at := time.Duration(0)
			for _, item := range items(n) {
				s := r.step(f, item, at)
				if s.At < at {
					r.bad(s.Pos, fmt.Sprintf("this step is at %s, the one before it at %s", s.At, at), "time only goes forward: put the steps in order")
				}
				at = max(at, s.At)
				c.Steps = append(c.Steps, s)
			}
		}},
	)
	for _, s := range c.Steps {
		if c.Start.Add(s.At).After(lastInstant) {
			r.bad(s.Pos, fmt.Sprintf("this step is after %d, and the clock does not go that far", lastInstant.Year()), "let the case start earlier, or the step be sooner")
			break
		}
	}
	if n.Kind == yamltree.Map && len(c.Steps) == 0 {
		r.bad(n.Pos, "the case has no steps", "write `steps:` and below it `- { at: 0s, request: GET /, want: ok }`")
	}
	return c
}

func (r *reader) instant(n *yamltree.Node) time.Time {
	t, err := time.Parse(time.RFC3339, n.Value)
	if err != nil {
		r.bad(n.Pos, fmt.Sprintf("`%s` is not an instant", n.Value), "write, for example, `2026-12-01T00:00:00Z`")
		return midnight
	}
	if t.Before(firstInstant) || t.After(lastInstant) {
		r.bad(n.Pos, fmt.Sprintf("`%s` is not between %d and %d", n.Value, firstInstant.UTC().Year(), lastInstant.Year()), "write, for example, `2026-12-01T00:00:00Z`")
		return midnight
	}
	return t
}

func (r *reader) step(f *File, n *yamltree.Node, at time.Duration) step {
	s := step{Pos: n.Pos, At: at, Times: 1}
	var want, reload *yamltree.Node
	before := len(r.problems)
	r.fields(n, "a step",
		field{"at", aDuration, func(n *yamltree.Node) {
			if d, ok := r.duration(n); ok {
				s.At = d
			}
		}},
		field{"reload", aText, func(n *yamltree.Node) { s.Reload, reload = r.path(f, n), n }},
		field{"request", aRequest, func(n *yamltree.Node) { r.request(&s, n) }},
		field{"as", namedTexts, func(n *yamltree.Node) { s.As = r.identities(n) }},
		field{"headers", namedTexts, func(n *yamltree.Node) { s.Headers = r.texts(n, "headers") }},
		field{"body", anything, func(n *yamltree.Node) { r.body(&s, n) }},
		field{"form", formFields, func(n *yamltree.Node) { r.form(&s, n, false) }},
		field{"multipart", formFields, func(n *yamltree.Node) { r.form(&s, n, true) }},
		field{"cost", wholeNumber(1, maxCost), func(n *yamltree.Node) { s.Cost = r.number(n, 1, maxCost) }},
		field{"times", wholeNumber(1, maxTimes), func(n *yamltree.Node) { s.Times = int(r.number(n, 1, maxTimes)) }},
		field{"response", one("a response"), func(n *yamltree.Node) { r.response(&s, n) }},
		field{"want", someOutcomes, func(n *yamltree.Node) { want = n }},
		field{"rule", aText, func(n *yamltree.Node) { s.Expect.Rule = r.expectText(n, "write the name of a rule") }},
		field{"class", aText, func(n *yamltree.Node) { s.Expect.Class = r.expectText(n, "write the name of a class") }},
		field{"shadow", aText, func(n *yamltree.Node) { s.Expect.Shadow = r.expectText(n, "write the name of a rule") }},
		field{"remaining", wholeNumber(0, maxCost), func(n *yamltree.Node) { s.Expect.Remaining = &placedNumber{r.number(n, 0, maxCost), n.Pos} }},
		field{"answer", wholeNumber(100, 599), func(n *yamltree.Node) { s.Expect.Answer = &placedNumber{r.number(n, 100, 599), n.Pos} }},
		field{"retry_after", aDuration, func(n *yamltree.Node) { s.Expect.RetryAfter = r.expectTime(n) }},
		field{"reset_after", aDuration, func(n *yamltree.Node) { s.Expect.ResetAfter = r.expectTime(n) }},
		field{"wait", aDuration, func(n *yamltree.Node) { s.Expect.Wait = r.expectTime(n) }},
	)
	switch {
	case len(r.problems) > before: // the missing part may be there, misspelled
	case reload != nil && s.Reload == "":
		r.bad(reload.Pos, "the reload names no rules", "write, for example, `reload: new.yaml`")
	case reload != nil:
		r.onlyReload(n)
		f.reloads(s.Reload)
	case s.Target == "":
		r.bad(n.Pos, "the step has no request", "write, for example, `request: POST /posts`")
	case want == nil:
		r.bad(n.Pos, "the step does not say what it wants", "write `want: ok` or `want: refused`")
	default:
		s.Want = r.want(want, s.Times)
	}
	return s
}

// onlyReload reports fields that a step with a reload cannot have: it sends no request.
func (r *reader) onlyReload(n *yamltree.Node) {
	for _, f := range n.Fields {
		if f.Key.Value != "reload" && f.Key.Value != "at" {
			r.bad(f.Key.Pos, fmt.Sprintf("a step that reloads the rules has no `%s`", f.Key.Value), "write the request as the next step")
		}
	}
}

// reloads records a rule file that a step puts in force.
func (f *File) reloads(name string) {
	if !slices.Contains(f.Reloads, name) {
		f.Reloads = append(f.Reloads, name)
	}
}

func (r *reader) expectText(n *yamltree.Node, hint string) *placedText {
	return &placedText{r.text(n, hint), n.Pos}
}

func (r *reader) expectTime(n *yamltree.Node) *placedTime {
	d, _ := r.duration(n)
	return &placedTime{d, n.Pos}
}

// request reads "POST /posts" or "GET example.com/search?q=x".
func (r *reader) request(s *step, n *yamltree.Node) {
	const hint = "write, for example, `POST /posts` or `GET example.com/search?q=x`"
	text := r.text(n, hint)
	method, target, ok := strings.Cut(text, " ")
	if !ok {
		method, target = http.MethodGet, text
	}
	slash := strings.IndexByte(target, '/')
	described := describe.Request{Method: method, URL: target}
	if _, err := described.HTTP(); err != nil || slash < 0 || strings.ContainsAny(target, " \t") || method == "" || method != strings.ToUpper(method) {
		r.bad(n.Pos, fmt.Sprintf("`%s` is not a request", text), hint)
		return
	}
	s.Method, s.Host, s.Target = method, target[:slash], target[slash:]
}

// identities requires addresses to be valid: no request could come from another.
func (r *reader) identities(n *yamltree.Node) map[string]string {
	as := r.texts(n, "identities")
	for _, f := range n.Fields {
		if f.Key.Value != "ip" {
			continue
		}
		if _, err := netip.ParseAddr(as["ip"]); err != nil {
			r.bad(f.Key.Pos, "`ip` is the address that the request comes from, and every request has one", "write, for example, `ip: 198.51.100.7`")
		}
	}
	return as
}

func (r *reader) response(s *step, n *yamltree.Node) {
	r.fields(n, "a response",
		field{"status", wholeNumber(100, 599), func(n *yamltree.Node) { s.Status = int(r.number(n, 100, 599)) }},
		field{"cost", wholeNumber(0, maxCost), func(n *yamltree.Node) { s.Settles, s.Actual = true, r.number(n, 0, maxCost) }},
		field{"after", aDuration, func(n *yamltree.Node) { s.Lasts, _ = r.duration(n) }},
	)
}

// outcomes are the words of want.
var outcomes = []string{string(admitted), string(soft), string(refused), string(denied)}

// want reads one outcome for all requests of a step, or one for each.
func (r *reader) want(n *yamltree.Node, times int) []wanted {
	words := items(n)
	if n.Kind == yamltree.List && len(words) != times {
		r.bad(n.Pos, fmt.Sprintf("want has %d outcomes for %d times", len(words), times), "write one word for all, or one for each")
		return nil
	}
	all := make([]wanted, 0, times)
	for _, w := range words {
		if !slices.Contains(outcomes, w.Value) || w.Kind != yamltree.Scalar {
			r.unknown(w, "outcome", "want", outcomes)
			return nil
		}
		all = append(all, wanted{outcome(w.Value), w.Pos})
	}
	for len(all) < times {
		all = append(all, all[0])
	}
	return all
}
