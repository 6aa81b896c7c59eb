package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// slow is how long /slow takes.
const slow = 2 * time.Second

// NewHandler returns the API of the demo, which knows nothing of limits.
func NewHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /healthz", text("fine\n"))
	mux.HandleFunc("GET /api/things", answer(map[string]any{"things": []string{"anchor", "buoy", "sluice"}}))
	mux.HandleFunc("GET /search", search)
	mux.HandleFunc("POST /login", login)
	mux.HandleFunc("POST /orders", orders())
	mux.HandleFunc("GET /slow", wait)
	mux.HandleFunc("POST /v1/chat", chat)
	return mux
}

func index(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `This is the demo upstream of Tidegate. It has

  GET  /api/things      some things
  GET  /search?q=WORD   whatever you look for
  POST /login           401, but for password=open
  POST /orders          takes an order
  GET  /slow            takes two seconds
  POST /v1/chat         answers in 37 tokens, or in max_tokens if that is less
  GET  /healthz         is fine
`)
}

func text(words string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, words) }
}

func answer(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, v) }
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

func search(w http.ResponseWriter, r *http.Request) {
	write(w, http.StatusOK, map[string]any{"found": []string{r.FormValue("q")}})
}

func login(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("password") != "open" {
		write(w, http.StatusUnauthorized, map[string]any{"error": "that is not the password; it is open"})
		return
	}
	write(w, http.StatusOK, map[string]any{"welcome": r.PostFormValue("user")})
}

func orders() http.HandlerFunc {
	var taken atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusCreated, map[string]any{"order": taken.Add(1)})
	}
}

func wait(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(slow):
		fmt.Fprintln(w, "that took two seconds")
	case <-r.Context().Done():
	}
}

// chat answers like a language model that has little to say.
func chat(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		MaxTokens int `json:"max_tokens"`
	}
	const usual, longest = 37, 64 << 10
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		write(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
		return
	}
	tokens := usual
	if asked.MaxTokens > 0 {
		tokens = min(tokens, asked.MaxTokens)
	}
	write(w, http.StatusOK, map[string]any{"answer": "It depends on the tide.", "usage": map[string]int{"total_tokens": tokens}})
}
