package source_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

func ExampleWatch() {
	dir, err := os.MkdirTemp("", "tidegate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "rules.yaml")
	save := func(limit string) {
		text := "version: 1\nrules:\n  - { name: api, per: everyone, limits: " + limit + " }\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	save("1/hour")

	ctx := context.Background()
	reloaded := make(chan bool)
	w, err := source.Watch(ctx, file, source.Options{
		OnReload: func(_, _ *rules.Set) { reloaded <- true },
	})
	if err != nil {
		log.Fatal(err) // every mistake of the file, with its line
	}
	defer w.Close()
	gate := tidegate.NewGate(w.Live(), memory.New())
	request := &tidegate.Request{Method: "GET", Path: "/"}
	fmt.Println(gate.Decide(ctx, request).OK, gate.Decide(ctx, request).OK)

	save("2/hour") // somebody edits the file
	<-reloaded
	fmt.Println(gate.Decide(ctx, request).OK, gate.Decide(ctx, request).OK)
	// Output:
	// true false
	// true false
}
