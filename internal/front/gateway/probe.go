package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// probe asks an upstream how it is, until ctx ends.
func (g *Gateway) probe(ctx context.Context, u *upstream) {
	o := &g.o.Health
	client := &http.Client{
		Transport:     u.transport,
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := ask(ctx, client, u.name+o.Path)
		if ctx.Err() != nil {
			return
		}
		if !isOwnFault(err) && u.health.asked(err == nil) {
			g.tellHealth(u, err)
		}
		timer.Reset(jitter(o.Every))
	}
}

// ask takes any answer below 400 for a good one.
func ask(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "tidegate-health")
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

func (g *Gateway) tellHealth(u *upstream, err error) {
	g.usable(u, err == nil)
	if err == nil {
		g.o.Log.Info("upstream is back", slog.String("upstream", u.name))
		return
	}
	g.o.Log.Warn("upstream is out of order; it gets no requests until it answers", slog.String("upstream", u.name), slog.String("error", unwrapURL(err).Error()))
}

// unwrapURL leaves out what the line says already.
func unwrapURL(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
