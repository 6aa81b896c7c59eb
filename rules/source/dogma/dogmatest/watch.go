package dogmatest

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watch answers when the content at a path has changed since a revision: 200 with the revision and
// the entry, or 304 after the wait.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, at string) {
	wait, notify, ok := preferences(r.Header.Get("Prefer"))
	if !ok {
		fail(w, http.StatusBadRequest, "IllegalArgumentException", "invalid prefer header: "+r.Header.Get("Prefer"))
		return
	}
	over := time.After(wait)
	s.mu.Lock()
	since := s.normalLocked(r.Header.Get("If-None-Match"))
	s.mu.Unlock()
	if since == 0 {
		fail(w, http.StatusNotFound, "RevisionNotFoundException", "revision: "+r.Header.Get("If-None-Match"))
		return
	}
	for {
		s.mu.Lock()
		newest, changed := len(s.commits), s.changed
		last := s.lastChangeLocked(at, since)
		files := s.filesLocked(newest)
		s.mu.Unlock()
		content, there := files[at]
		pattern := strings.ContainsAny(at, "*")
		switch {
		case !there && !pattern && notify:
			fail(w, http.StatusNotFound, "EntryNotFoundException", "Path not found: "+at)
			return
		case last > 0 && (there || pattern):
			if !s.LastChange {
				last = newest
			}
			body := map[string]any{"revision": last}
			if there {
				body["entry"] = s.entry(at, content, last)
			}
			answer(w, http.StatusOK, body)
			return
		}
		select {
		case <-changed:
		case <-over:
			w.WriteHeader(http.StatusNotModified)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// lastChangeLocked returns the last revision after since that changed something at a path; 0 if
// there is none.
func (s *Server) lastChangeLocked(at string, since int) int {
	for n := len(s.commits); n > since; n-- {
		if s.touchesLocked(n, at) {
			return n
		}
	}
	return 0
}

// touchesLocked reports whether a revision changed something at a path.
func (s *Server) touchesLocked(revision int, at string) bool {
	if revision < 2 {
		return false
	}
	is, was := s.filesLocked(revision), s.filesLocked(revision-1)
	for _, name := range slices.Concat(matching(is, at), matching(was, at)) {
		if _, there := is[name]; !there || !bytes.Equal(is[name], was[name]) {
			return true
		}
	}
	return false
}

// preferences parses the header Prefer; wait is required, in whole seconds.
func preferences(text string) (wait time.Duration, notify, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "wait":
			n, err := strconv.Atoi(value)
			wait, ok = time.Duration(n)*time.Second, err == nil && n > 0
		case "notify-entry-not-found":
			notify = strings.EqualFold(value, "true")
		}
	}
	return wait, notify, ok
}

// get answers what is at a path, or at all paths that match it, as of a revision.
func (s *Server) get(w http.ResponseWriter, r *http.Request, at string) {
	s.mu.Lock()
	text := r.URL.Query().Get("revision")
	if text == "" {
		text = "-1"
	}
	revision := s.normalLocked(text)
	if revision == 0 {
		s.mu.Unlock()
		fail(w, http.StatusNotFound, "RevisionNotFoundException", "revision: "+text)
		return
	}
	files := s.filesLocked(revision)
	s.mu.Unlock()
	if strings.Contains(at, "*") {
		all := []map[string]any{}
		for _, name := range matching(files, at) {
			all = append(all, s.entry(name, files[name], revision))
		}
		answer(w, http.StatusOK, all)
		return
	}
	content, there := files[at]
	if !there {
		fail(w, http.StatusNotFound, "EntryNotFoundException", "Path not found: "+at)
		return
	}
	answer(w, http.StatusOK, s.entry(at, content, revision))
}
