package dogmatest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// push accepts a commit if its base is the newest revision and it changes something.
func (s *Server) push(w http.ResponseWriter, r *http.Request) {
	var body struct {
		CommitMessage struct{ Summary, Detail, Markup string }
		Changes       []struct {
			Path, Type string
			Content    json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.CommitMessage.Summary == "" || len(body.Changes) == 0 {
		fail(w, http.StatusBadRequest, "IllegalArgumentException", "not a push")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := len(s.commits)
	if s.normalLocked(r.URL.Query().Get("revision")) != newest {
		fail(w, http.StatusConflict, "ChangeConflictException", "invalid baseRevision")
		return
	}
	files := maps.Clone(s.filesLocked(newest))
	for _, c := range body.Changes {
		_, there := files[c.Path]
		switch {
		case c.Type == "REMOVE" && there:
			delete(files, c.Path)
		case c.Type == "UPSERT_TEXT" && !isJSON(c.Path), c.Type == "UPSERT_JSON" && isJSON(c.Path):
			files[c.Path] = c.Content
		default:
			fail(w, http.StatusConflict, "ChangeConflictException", c.Type+" "+c.Path)
			return
		}
	}
	revision := s.pushLocked(commit{files: files, author: "app-token", summary: body.CommitMessage.Summary, detail: body.CommitMessage.Detail})
	answer(w, http.StatusOK, map[string]any{"revision": revision, "pushedAt": s.commits[revision-1].at.Format(time.RFC3339)})
}

// history lists commits, the newest first.
func (s *Server) history(w http.ResponseWriter, r *http.Request, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	n, to := s.normalLocked(from), s.normalLocked(q.Get("to"))
	if n == 0 || to == 0 {
		fail(w, http.StatusNotFound, "RevisionNotFoundException", from)
		return
	}
	most, err := strconv.Atoi(q.Get("maxCommits"))
	if err != nil {
		most = 100
	}
	all := []map[string]any{}
	for ; n >= to && len(all) < most; n-- {
		c := s.commits[n-1]
		if at := q.Get("path"); at == "" || s.touchesLocked(n, at) {
			all = append(all, map[string]any{
				"revision": n, "author": map[string]string{"name": c.author, "email": c.author + "@localhost"},
				"commitMessage": map[string]string{"summary": c.summary, "detail": c.detail, "markup": "PLAINTEXT"},
				"pushedAt":      c.at.Format(time.RFC3339),
			})
		}
	}
	answer(w, http.StatusOK, all)
}
