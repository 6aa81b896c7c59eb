package source

import (
	"context"
	"log/slog"
	"time"

	"tidegate.dev/tidegate/rules"
)

// jwksWatch fetches the keys of a URL when that is due, and logs the outcome.
type jwksWatch struct {
	jwt  *rules.JWT
	log  *slog.Logger
	stop context.CancelFunc
	done chan struct{}
}

// watchJWKS returns nil if the keys are not from a URL.
func watchJWKS(ctx context.Context, jwt *rules.JWT, log *slog.Logger) *jwksWatch {
	if jwt == nil {
		return nil
	}
	first, ok := jwt.Status()
	if !ok {
		return nil
	}
	w := &jwksWatch{jwt: jwt, log: log, done: make(chan struct{})}
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx, first)
	return w
}

func (w *jwksWatch) run(ctx context.Context, was rules.JWKSStatus) {
	defer close(w.done)
	defer w.stop()
	w.tell(rules.JWKSStatus{}, was)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.jwt.RefreshKeys()
			is, _ := w.jwt.Status()
			w.tell(was, is)
			was = is
		}
	}
}

// tell logs changes: the beginning and the end of an outage, not every attempt.
func (w *jwksWatch) tell(was, is rules.JWKSStatus) {
	switch {
	case is.LastError != "" && was.LastError == "" && is.Keys == 0:
		w.log.Error("the keys that verify tokens could not be fetched, and there are none: tokens count as missing", "url", is.URL, "err", is.LastError)
	case is.LastError != "" && was.LastError == "":
		w.log.Error("the keys that verify tokens could not be fetched: those fetched before stay in use", "url", is.URL, "keys", is.Keys, "fetched", is.FetchedAt, "err", is.LastError)
	case is.LastError == "" && was.LastError != "":
		w.log.Info("the keys that verify tokens are fetched again", "url", is.URL, "keys", is.Keys)
	}
	if is.CopyError != "" && was.CopyError == "" {
		w.log.Error("the copy of the keys that verify tokens could not be written", "err", is.CopyError)
	}
}

func (w *jwksWatch) close() {
	if w != nil {
		w.stop()
		<-w.done
	}
}

func (w *jwksWatch) status() *rules.JWKSStatus {
	if w == nil {
		return nil
	}
	s, _ := w.jwt.Status()
	return &s
}
