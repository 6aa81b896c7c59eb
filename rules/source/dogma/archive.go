package dogma

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// commit is a revision as Central Dogma lists it.
type commit struct {
	Revision int `json:"revision"`
	Author   struct {
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"author"`
	Message struct {
		Summary string `json:"summary"`
		Detail  string `json:"detail"`
	} `json:"commitMessage"`
	PushedAt time.Time `json:"pushedAt"`
}

// authorLine is how the detail of a commit names the author of rules: the server knows only
// whose token it is.
const authorLine = "Author: "

func (c *commit) edition() source.Edition {
	e := source.Edition{Revision: strconv.Itoa(c.Revision), Author: c.Author.Name, Reason: c.Message.Summary, At: c.PushedAt}
	for line := range strings.Lines(c.Message.Detail) {
		if author, ok := strings.CutPrefix(strings.TrimSpace(line), authorLine); ok {
			e.Author = author
		}
	}
	return e
}

// History implements [source.Archive].
func (s *Source) History(ctx context.Context) ([]source.Edition, error) {
	return s.commits(ctx, strconv.Itoa(newest), source.Kept)
}

// commits lists the last revisions that changed the rules, from upTo backwards.
func (s *Source) commits(ctx context.Context, upTo string, most int) ([]source.Edition, error) {
	u := s.api.JoinPath("commits", upTo)
	u.RawQuery = url.Values{"path": {s.folder + everything}, "to": {strconv.Itoa(first)}, "maxCommits": {strconv.Itoa(most)}}.Encode()
	a, err := s.do(ctx, "commits", web.Request{URL: u, Max: source.MaxFile})
	if err != nil {
		return nil, err
	}
	var all []commit
	if text := strings.TrimSpace(string(a.Body)); strings.HasPrefix(text, "{") {
		all = make([]commit, 1)
		err = s.decode("commits", a, &all[0])
	} else if text != "" {
		err = s.decode("commits", a, &all)
	}
	all = all[:min(len(all), most)]
	editions := make([]source.Edition, 0, len(all))
	for i := range all {
		editions = append(editions, all[i].edition())
	}
	return editions, err
}

// Get implements [source.Archive].
func (s *Source) Get(ctx context.Context, revision string) (*source.Bundle, error) {
	n, err := number(revision)
	if err != nil {
		return nil, err
	}
	is, err := s.collect(ctx, n)
	if lostRevision(err) || missing(err) {
		return nil, fmt.Errorf("%s of %s: %w", revision, s.name, source.ErrNoRevision)
	}
	if err != nil {
		return nil, err
	}
	s.describe(ctx, is)
	is.bundle.Revision = revision
	return is.bundle, nil
}

// change is a part of a commit.
type change struct {
	Path    string `json:"path"`
	Type    string `json:"type"`
	Content any    `json:"content,omitempty"`
}

// Publish implements [source.Archive].
func (s *Source) Publish(ctx context.Context, b *source.Bundle, expected string) (string, error) {
	if s.main != "" && b.Main != s.main {
		return "", fmt.Errorf("%s is one rule file: publish a set that begins with %s, or name its folder with a slash at the end", s.name, s.main)
	}
	if len(b.Files) == 0 {
		return "", errors.New("a rule set without files cannot be published")
	}
	if len(b.Over) > 0 {
		return "", fmt.Errorf("%s has no place for several layers: publish each in a folder of its own, and list these folders under `rules`", s.name)
	}
	was, err := s.current(ctx)
	switch {
	case missing(err) || errors.Is(err, errEmpty):
		was = &snapshot{bundle: &source.Bundle{}}
	case err != nil:
		return "", err
	}
	if was.bundle.Revision != expected && !s.unchanged(ctx, was, expected) {
		return "", source.ErrConflict
	}
	base := newest
	if was.revision > 0 { // other commits to the repository may be newer
		if base, err = s.head(ctx); err != nil {
			return "", err
		}
		base = max(base, was.revision)
		is, err := s.collect(ctx, base)
		if err != nil {
			return "", err
		}
		if !maps.EqualFunc(is.bundle.Files, was.bundle.Files, bytes.Equal) {
			return "", source.ErrConflict
		}
	}
	changes, err := s.changes(was.bundle.Files, b.Files)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 { // only files that are not ours were changed since
		return expected, nil
	}
	var push struct {
		Message struct {
			Summary string `json:"summary"`
			Detail  string `json:"detail"`
			Markup  string `json:"markup"`
		} `json:"commitMessage"`
		Changes []change `json:"changes"`
	}
	push.Message.Summary, push.Message.Markup, push.Changes = cmp.Or(oneLine(b.Reason), "Change the rules"), "PLAINTEXT", changes
	if b.Author != "" {
		push.Message.Detail = authorLine + oneLine(b.Author)
	}
	body, err := json.Marshal(push)
	if err != nil {
		return "", err
	}
	u := s.api.JoinPath("contents")
	u.RawQuery = "revision=" + strconv.Itoa(base)
	a, err := s.do(ctx, "contents", web.Request{Method: http.MethodPost, URL: u, Body: body, Header: http.Header{"Content-Type": {"application/json"}}, Max: source.MaxFile})
	var refused *apiError
	if errors.As(err, &refused) && refused.status == http.StatusConflict {
		return "", fmt.Errorf("%w (%s)", source.ErrConflict, refused.exception)
	}
	if err != nil {
		return "", err
	}
	var done struct {
		Revision int `json:"revision"`
	}
	if err := s.decode("contents", a, &done); err != nil {
		return "", err
	}
	return strconv.Itoa(done.Revision), nil
}

// unchanged reports whether the files are still those of an earlier revision: the history lists
// only commits that changed them, and the repository may have later ones.
func (s *Source) unchanged(ctx context.Context, is *snapshot, since string) bool {
	n, err := number(since)
	if err != nil || is.revision == 0 {
		return false
	}
	was, err := s.collect(ctx, n)
	return err == nil && maps.EqualFunc(is.bundle.Files, was.bundle.Files, bytes.Equal)
}

// changes returns the changes that turn was into is.
func (s *Source) changes(was, is map[string][]byte) (all []change, err error) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if string(was[name]) == string(is[name]) && was[name] != nil {
			continue
		}
		c := change{Path: s.folder + name, Type: "UPSERT_TEXT", Content: string(is[name])}
		if path.Ext(name) == ".json" { // the server requires valid JSON
			c.Type, c.Content = "UPSERT_JSON", json.RawMessage(is[name])
			if !json.Valid(is[name]) {
				return nil, fmt.Errorf("%s is not JSON, and Central Dogma takes no other file of that name", name)
			}
		}
		all = append(all, c)
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[name]; !ok {
			all = append(all, change{Path: s.folder + name, Type: "REMOVE"})
		}
	}
	return all, nil
}
