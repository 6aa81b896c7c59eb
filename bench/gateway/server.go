package main

import (
	"context"
	"fmt"
	"net/http"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// server is a process of ours that answers HTTP.
type server struct{ *daemon.Server }

// await returns once the server answers with the wanted status.
func (s *server) await(ctx context.Context, status int) error {
	return s.Await(ctx, func(ctx context.Context) error { return s.probe(ctx, status) })
}

// probe asks once and looks at the whole answer.
func (s *server) probe(ctx context.Context, status int) error {
	got, body, err := get(ctx, "http://"+s.Address+loadPath)
	if err != nil {
		return err
	}
	if got != status || status == http.StatusOK && body != answer {
		return fmt.Errorf("%s answers %d %q, want %d", s.Name, got, body, status)
	}
	return nil
}
