package source_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

var (
	ctx = context.Background()
	mux = http.NewServeMux()
)

// In front of an http.Handler, by the rules of a file. The middle of it is also
// in the README.
func Example_middleware() {
	dir, err := os.MkdirTemp("", "tidegate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "version: 1\nrules:\n  - { name: api, per: ip, limits: 1/minute }\n"
	if err := os.WriteFile(dir+"/rules.yaml", []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	before, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	defer os.Chdir(before)

	followed, err := source.Watch(ctx, "rules.yaml", source.Options{}) // loads, and reloads when it changes
	if err != nil {
		log.Fatal(err) // every mistake, with its line and what to write instead
	}
	defer followed.Close()

	gate := tidegate.NewGate(followed.Live(), memory.New())
	handler := httplimit.Gate(gate)(mux)

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 404
	// 429
}
