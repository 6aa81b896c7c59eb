package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// viewers are open pages.
type viewers struct {
	events, bytes, open atomic.Int64
	end                 context.CancelFunc
	all                 sync.WaitGroup
	transport           *http.Transport
}

// openPages signs in, opens so many pages and returns when each has shown something.
func openPages(ctx context.Context, admin string, n int) (*viewers, error) {
	cookie, err := signIn(ctx, admin)
	if err != nil {
		return nil, err
	}
	v := &viewers{transport: new(http.Transport)}
	ctx, v.end = context.WithCancel(ctx)
	shown := make(chan error, n)
	for i := range n {
		path := "/live"
		if i%2 == 1 {
			path = "/live?rule=search"
		}
		v.all.Go(func() { v.follow(ctx, admin+path, cookie, shown) })
	}
	for range n {
		select {
		case err = <-shown:
		case <-time.After(time.Minute):
			err = fmt.Errorf("not all pages are open after a minute")
		}
		if err != nil {
			v.close()
			return nil, err
		}
	}
	return v, nil
}

// signIn returns the cookie of a session.
func signIn(ctx context.Context, admin string) (*http.Cookie, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, admin+"/session", strings.NewReader(`{"token":"`+token+`"}`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	if cookies := answer.Cookies(); answer.StatusCode == http.StatusOK && len(cookies) == 1 {
		return cookies[0], nil
	}
	return nil, fmt.Errorf("sign in: %s", answer.Status)
}

// follow counts the events of a page until ctx ends. It tells of the first one.
func (v *viewers) follow(ctx context.Context, url string, cookie *http.Cookie, shown chan<- error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		shown <- err
		return
	}
	r.AddCookie(cookie)
	answer, err := v.transport.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		err = fmt.Errorf("a page is not fed: %s", answer.Status)
	}
	if err != nil {
		shown <- err
		return
	}
	defer answer.Body.Close()
	v.open.Add(1)
	defer v.open.Add(-1)
	lines, first := bufio.NewReader(answer.Body), true
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if first {
				shown <- err
			}
			return
		}
		if strings.HasPrefix(line, "data:") {
			v.events.Add(1)
			v.bytes.Add(int64(len(line)))
			if first {
				first = false
				shown <- nil
			}
		}
	}
}

// close closes all pages.
func (v *viewers) close() {
	v.end()
	v.all.Wait()
	v.transport.CloseIdleConnections()
}
