// Package dogmatest is a stand-in for Central Dogma in tests: the part of its HTTP API about the
// contents of one repository, with revisions, long polls, patterns, history and pushes, and with
// every delay and failure that a test asks for. Start with [New]. It keeps everything in memory.
package dogmatest

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is an [http.Handler] with one repository.
type Server struct {
	// Hook, if it is set before the first request, is called for every request, and reports whether
	// it has answered.
	Hook func(w http.ResponseWriter, r *http.Request) bool
	// LastChange makes a watch answer with the revision in which a file was last changed, instead
	// of the newest.
	LastChange bool

	root, token string

	mu      sync.Mutex
	commits []commit      // under mu; the first is empty
	changed chan struct{} // under mu; closed by the next commit
}

type commit struct {
	files   map[string]json.RawMessage // all, with their content as JSON
	author  string
	summary string
	detail  string
	at      time.Time
}

// New returns a server with an empty repository. If there is a token, requests must present it.
func New(project, repository, token string) *Server {
	s := &Server{root: "/api/v1/projects/" + project + "/repos/" + repository, token: token, changed: make(chan struct{})}
	s.commits = []commit{{files: map[string]json.RawMessage{}, author: "System", summary: "Create a new repository"}}
	return s
}

// Commit changes files by their paths, which begin with a slash; "" removes one. Files that end
// in .json are JSON. It returns the revision.
func (s *Server) Commit(summary string, files map[string]string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.commits[len(s.commits)-1].files)
	for name, text := range files {
		content := json.RawMessage(text)
		if !isJSON(name) {
			content, _ = json.Marshal(text) // a string always can be
		}
		if next[name] = content; text == "" {
			delete(next, name)
		}
	}
	return s.pushLocked(commit{files: next, author: "ann", summary: summary})
}

func (s *Server) pushLocked(c commit) int {
	c.at = time.Now().UTC().Truncate(time.Second)
	s.commits = append(s.commits, c)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(s.commits)
}

// Revert makes the server forget all but the first revisions, as if it was restored from a backup.
func (s *Server) Revert(to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits = s.commits[:to]
}

func isJSON(name string) bool { return path.Ext(name) == ".json" }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Hook != nil && s.Hook(w, r) {
		return
	}
	if s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token {
		fail(w, http.StatusUnauthorized, "AuthorizationException", "")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, s.root)
	if !ok {
		fail(w, http.StatusNotFound, "RepositoryNotFoundException", r.URL.Path)
		return
	}
	at, contents := strings.CutPrefix(rest, "/contents")
	from, history := strings.CutPrefix(rest, "/commits/")
	switch {
	case contents && at == "" && r.Method == http.MethodPost:
		s.push(w, r)
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case contents && r.Header.Get("If-None-Match") != "":
		s.watch(w, r, at)
	case contents:
		s.get(w, r, at)
	case history:
		s.history(w, r, from)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// fail answers as the server does: the name of a Java class, and a message.
func fail(w http.ResponseWriter, status int, exception, message string) {
	answer(w, status, map[string]string{"exception": "com.linecorp.centraldogma.common." + exception, "message": message})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// normalLocked returns the absolute revision for text; 0 if there is no such revision.
func (s *Server) normalLocked(text string) int {
	n, err := strconv.Atoi(text)
	if n < 0 {
		n += len(s.commits) + 1
	}
	if err != nil || n < 1 || n > len(s.commits) {
		return 0
	}
	return n
}

func (s *Server) filesLocked(revision int) map[string]json.RawMessage {
	return s.commits[revision-1].files
}

// matching returns the paths that match a pattern: ** matches anything, * anything without a slash.
func matching(files map[string]json.RawMessage, pattern string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if matches(pattern, name) {
			all = append(all, name)
		}
	}
	return all
}

func matches(pattern, name string) bool {
	if folder, ok := strings.CutSuffix(pattern, "**"); ok {
		return strings.HasPrefix(name, folder)
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func (s *Server) entry(name string, content json.RawMessage, revision int) map[string]any {
	kind := "TEXT"
	if isJSON(name) {
		kind = "JSON"
	}
	return map[string]any{"path": name, "type": kind, "content": content, "revision": revision, "url": s.root + "/contents" + name}
}
