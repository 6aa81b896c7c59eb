package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	pause  = 50 * time.Millisecond // between two honest requests
	enough = 2 * time.Second       // how long an honest client waits for an answer
)

// honest is a well-behaved client beside the attackers; each request is on a new connection.
type honest struct {
	end    context.CancelFunc
	ended  sync.WaitGroup
	served int
	failed []string
}

func startHonest(url string) *honest {
	ctx, end := context.WithCancel(context.Background())
	h := &honest{end: end}
	client := newClient()
	h.ended.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := ask(client, url+"/"); err == nil {
				h.served++
			} else {
				h.failed = append(h.failed, fmt.Sprintf("request %d: %v", n, err))
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	return h
}

func newClient() *http.Client {
	return &http.Client{Timeout: enough, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// ask returns an error unless the answer is 200, and complete.
func ask(client *http.Client, url string) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it was answered %s", res.Status)
	}
	return nil
}

func (h *honest) stop() (served int, failed []string) {
	h.end()
	h.ended.Wait()
	return h.served, h.failed
}
