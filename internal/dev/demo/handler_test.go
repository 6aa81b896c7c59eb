package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHandler(t *testing.T) {
	h := NewHandler()
	f := func(request, body string, status int, want string) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if strings.Contains(body, "=") {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s, want %d %s", request, body, w.Code, w.Body, status, want)
		}
	}
	f("GET /", "", 200, "POST /orders")
	f("GET /nothing", "", 404, "")
	f("GET /healthz", "", 200, "fine")
	f("GET /api/things", "", 200, "sluice")
	f("GET /search?q=tide", "", 200, `["tide"]`)
	f("POST /login", "", 401, "it is open")
	f("POST /login", "password=closed", 401, "")
	f("POST /login", "user=ann&password=open", 200, "ann")
	f("POST /orders", "", 201, `"order":1`)
	f("POST /orders", "", 201, `"order":2`)
	f("GET /orders", "", 405, "")
	f("POST /v1/chat", "", 200, `"total_tokens":37`)
	f("POST /v1/chat", `{"max_tokens":5}`, 200, `"total_tokens":5`)
	f("POST /v1/chat", `{"max_tokens":5000}`, 200, `"total_tokens":37`)
	f("POST /v1/chat", `{`, 400, "error")
	f("POST /v1/chat", strings.Repeat(" ", 1<<17), 400, "too large")
}

func TestStart(t *testing.T) {
	u, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	res, err := http.Get(u.URL.JoinPath("slow").String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); time.Since(begun) < slow || !strings.Contains(string(text), "two seconds") {
		t.Errorf("after %s: %s", time.Since(begun), text)
	}
	if !strings.HasPrefix(u.URL.Host, "127.0.0.1:") {
		t.Errorf("it listens on %s", u.URL.Host)
	}
	u.Close()
	if _, err := http.Get(u.URL.String()); err == nil {
		t.Error("it still answers")
	}
}

// The lines are whole: nothing that stands for an address is left in them.
func TestTriesAreFilledIn(t *testing.T) {
	p := Place{Gateway: "http://127.0.0.1:8080", Admin: "http://127.0.0.1:9090", Program: "./tidegate", Rules: "rules.yaml"}
	all := Tries(p)
	for _, try := range all {
		for _, word := range []string{"GATEWAY", "ADMIN", "PROGRAM", "RULES"} {
			if strings.Contains(try.Line, word) {
				t.Errorf("%s is left in %s", word, try.Line)
			}
		}
	}
	p.Rules = ""
	if without := Tries(p); len(without) != len(all)-1 {
		t.Errorf("%d lines without a rule file, %d with one: want one less", len(without), len(all))
	}
	var b strings.Builder
	Invite(&b, p)
	if strings.Contains(b.String(), "Edit ") || !strings.Contains(b.String(), "Ctrl-C") {
		t.Errorf("without a rule file it says\n%s", &b)
	}
}
