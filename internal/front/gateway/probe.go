package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// probe checks the health of an upstream at an interval, until ctx ends.
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
		err := checkHealth(ctx, client, u.name+o.Path)
		if ctx.Err() != nil {
			return
		}
		if !isLocalFailure(err) && u.health.probed(err == nil) {
			g.logHealth(u, err)
		}
		timer.Reset(jitter(o.Every))
	}
}

// checkHealth sends one probe. Any status below 400 is healthy.
func checkHealth(ctx context.Context, client *http.Client, url string) error {
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

// logHealth reports that u came up or went down by a probe; err is why the probe failed, or nil.
func (g *Gateway) logHealth(u *upstream, err error) {
	g.reportUsable(u, err == nil)
	if err == nil {
		g.o.Log.Info("upstream is back", slog.String("upstream", u.name))
		return
	}
	g.o.Log.Warn("upstream fails its health probes; it is ejected until one succeeds", slog.String("upstream", u.name), slog.String("error", unwrapURL(err).Error()))
}

// unwrapURL removes the URL, which the log line has already.
func unwrapURL(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
