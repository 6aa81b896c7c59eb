package dogma

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/rules/source/feed"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// entry is a file as Central Dogma sends it.
type entry struct {
	Path     string          `json:"path"`
	Type     string          `json:"type"` // JSON, TEXT, DIRECTORY
	Content  json.RawMessage `json:"content"`
	Revision int             `json:"revision"`
}

// watched is the answer to a watch. If a pattern was watched, it has no entry.
type watched struct {
	Revision int    `json:"revision"`
	Entry    *entry `json:"entry"`
}

// apiError is an error that the server reports.
type apiError struct {
	status    int
	exception string // the last part of the name of its class; "" if it does not say
	error
}

func (e *apiError) Unwrap() error { return e.error }

// missing reports whether err says just that the file does not exist.
func missing(err error) bool {
	var e *apiError
	return errors.As(err, &e) && e.status == http.StatusNotFound && (e.exception == "EntryNotFoundException" || e.exception == "")
}

// lostRevision reports whether err says that the server does not have the revision.
func lostRevision(err error) bool {
	var e *apiError
	return errors.As(err, &e) && e.exception == "RevisionNotFoundException"
}

// text returns the content of a file.
func (e *entry) text() ([]byte, error) {
	var text string
	switch {
	case len(e.Content) == 0:
		return nil, fmt.Errorf("the entry %s has no content", e.Path)
	case e.Type != "JSON" && json.Unmarshal(e.Content, &text) == nil && e.Content[0] == '"':
		return []byte(text), nil
	case e.Type == "TEXT":
		return nil, fmt.Errorf("the entry %s is of type TEXT, and its content is not text", e.Path)
	}
	var lines bytes.Buffer // on several lines, so that problems have line numbers
	if err := json.Indent(&lines, e.Content, "", "  "); err != nil {
		return nil, err
	}
	lines.WriteByte('\n')
	return lines.Bytes(), nil
}

// watch waits until the entry at a path has changed since a revision, and returns the newest. It
// returns nil if there was no change within wait. It also waits for a missing file, unless notify
// is set: then it returns an error.
func (s *Source) watch(ctx context.Context, at string, since int, wait time.Duration, notify bool) (*watched, time.Duration, error) {
	q := web.Request{URL: s.contents(at, 0), Header: http.Header{}, Wait: wait, Max: feed.MaxBody}
	q.Header.Set("If-None-Match", strconv.Itoa(since))
	prefer := "wait=" + web.Seconds(wait)
	if notify {
		prefer += ", notify-entry-not-found=true"
	}
	q.Header.Set("Prefer", prefer)
	a, err := s.do(ctx, at, q)
	switch {
	case err != nil:
		return nil, 0, err
	case a.Status == http.StatusNotModified:
		return nil, a.Took, nil
	}
	var w watched
	if err := s.decode(at, a, &w); err != nil {
		return nil, 0, err
	}
	if w.Revision < 1 {
		return nil, 0, fmt.Errorf("get %s of %s: the answer has no revision", at, s.name)
	}
	return &w, a.Took, nil
}

// get returns the entry at a path, as of a revision.
func (s *Source) get(ctx context.Context, at string, revision int) (*entry, error) {
	a, err := s.do(ctx, at, web.Request{URL: s.contents(at, revision), Max: feed.MaxBody})
	if err != nil {
		return nil, err
	}
	var w struct {
		entry
		Entry *entry `json:"entry"` // as in an answer to a watch
	}
	if err := s.decode(at, a, &w); err != nil {
		return nil, err
	}
	if w.Entry != nil {
		w.Entry.Revision = max(w.Entry.Revision, w.Revision)
		return w.Entry, nil
	}
	return &w.entry, nil
}

// find returns the entries whose paths match a pattern, as of a revision.
func (s *Source) find(ctx context.Context, pattern string, revision int) (all []*entry, err error) {
	a, err := s.do(ctx, pattern, web.Request{URL: s.contents(pattern, revision), Max: feed.MaxBody})
	if missing(err) {
		return nil, nil
	}
	if err != nil || a.Status == http.StatusNoContent {
		return nil, err
	}
	return all, s.decode(pattern, a, &all)
}

// contents returns the URL of a file or pattern, as of a revision; 0 leaves the revision out.
func (s *Source) contents(at string, revision int) *url.URL {
	u := *s.api
	escaped := make([]string, 0, 8)
	for part := range strings.SplitSeq(at, "/") {
		escaped = append(escaped, strings.ReplaceAll(url.PathEscape(part), "%2A", "*"))
	}
	u.RawPath = s.api.EscapedPath() + "/contents" + strings.Join(escaped, "/")
	u.Path = s.api.Path + "/contents" + at
	if revision != 0 {
		u.RawQuery = "revision=" + strconv.Itoa(revision)
	}
	return &u
}

// do sends a request, and returns an error for every answer that is not a success.
func (s *Source) do(ctx context.Context, what string, q web.Request) (*web.Answer, error) {
	if q.Header == nil {
		q.Header = http.Header{}
	}
	q.Header.Set("Accept", "application/json")
	a, err := s.client.Do(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("get %s of %s: %w", what, s.name, err)
	}
	switch {
	case a.Status >= 200 && a.Status < 300, a.Status == http.StatusNotModified && q.Header.Get("If-None-Match") != "":
		return a, nil
	}
	var reply struct{ Exception, Message string }
	_ = json.Unmarshal(a.Body, &reply) // it may say nothing
	e := &apiError{status: a.Status, exception: reply.Exception[strings.LastIndexByte(reply.Exception, '.')+1:]}
	err = web.Refused(a)
	if reply.Message = oneLine(reply.Message); reply.Message != "" {
		err = fmt.Errorf("%w: %s", err, reply.Message)
	}
	e.error = fmt.Errorf("get %s of %s: %w", what, s.name, err)
	return nil, e
}

func (s *Source) decode(what string, a *web.Answer, to any) error {
	if err := json.Unmarshal(a.Body, to); err != nil {
		return fmt.Errorf("get %s of %s: the answer is not JSON of Central Dogma: %w", what, s.name, err)
	}
	return nil
}

// oneLine returns text as one line for a log.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if r := []rune(text); len(r) > 300 {
		return string(r[:300]) + "…"
	}
	return text
}
