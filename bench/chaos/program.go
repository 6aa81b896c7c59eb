package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
)

// programWord is how this program is told to be one that a user writes.
const programWord = "program"

const (
	programPath   = "/hello/"
	programEvents = 1000 // an hour
)

// userProgram returns all that a user writes: a handler behind httplimit, on fleet.Open with its
// defaults.
func userProgram(redis string) (http.Handler, *fleet.Store, error) {
	store, err := fleet.Open(redis, fleet.Options{})
	if err != nil {
		return nil, nil, err
	}
	lim := tidegate.New(store, tidegate.PerHour(programEvents))
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	return httplimit.Limit(lim, httplimit.IP())(hello), store, nil
}

// asProgram runs the program if the arguments of this process say so: an address to listen
// on, a Redis, and the process it ends with.
func asProgram() {
	if len(os.Args) != 5 || os.Args[1] != programWord {
		return
	}
	rig, err := strconv.Atoi(os.Args[4])
	if err == nil {
		go endWith(rig)
		err = runProgram(os.Args[2], os.Args[3])
	}
	fmt.Fprintln(os.Stderr, "chaos program:", err)
	os.Exit(1)
}

// runProgram serves the program, and beside it what the rig wants to know.
func runProgram(address, redis string) error {
	handler, store, err := userProgram(redis)
	if err != nil {
		return err
	}
	defer store.Close()
	p := new(probe)
	go p.watch(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/probe", p)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		h := store.Health()
		_ = json.NewEncoder(w).Encode(healthReply{Status: h.Status, Instances: h.Instances})
	})
	mux.HandleFunc(programPath, func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		handler.ServeHTTP(w, r)
		p.note(&accessLine{Path: r.URL.Path, MS: float64(time.Since(start)) / float64(time.Millisecond)})
	})
	return http.ListenAndServe(address, mux)
}
