package source_test

import (
	"context"
	"log"
	"net/http"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

var (
	ctx = context.Background()
	mux = http.NewServeMux()
)

// In front of an http.Handler, by the rules of a file.
func Example_middleware() {
	followed, err := source.Watch(ctx, "rules.yaml", source.Options{}) // loads, and reloads when it changes
	if err != nil {
		log.Fatal(err) // every mistake, with its line and what to write instead
	}
	defer followed.Close()

	gate := tidegate.NewGate(followed.Live(), memory.New())
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", httplimit.Gate(gate)(mux)))
}
