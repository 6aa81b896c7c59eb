package main

import (
	"context"
	"fmt"
	"net/http"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// server is a process of ours that answers HTTP.
type server struct{ *daemon.Server }

// await returns once the server answers that load with the wanted status.
func (s *server) await(ctx context.Context, l load, status int) error {
	return s.Await(ctx, func(ctx context.Context) error { return s.probe(ctx, l, status) })
}

// probe asks once and looks at the whole answer.
func (s *server) probe(ctx context.Context, l load, status int) error {
	got, body, err := get(ctx, l.url(s.Address))
	if err != nil {
		return err
	}
	if got != status || status == http.StatusOK && body != answerTo(l.path) {
		return fmt.Errorf("%s answers %d with %d bytes, want %d", s.Name, got, len(body), status)
	}
	return nil
}
