package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/client"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

// busy is an API that refuses the first request.
func busy() *httptest.Server {
	first := true
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
}

// An http.Client that waits as long as it is asked to. It logs what it waits for.
func ExampleTransport() {
	server := busy()
	defer server.Close()

	api := &http.Client{Transport: &client.Transport{
		OnEvent: func(r *http.Request, e client.Event) {
			slog.Debug("outbound call", "what", e.Kind.String(), "host", e.Key, "status", e.Status, "wait", e.Wait)
		},
	}}
	res, err := api.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, string(text))
	// Output: 200 hello
}

// thankful is an API that accepts everything.
func thankful() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"total_tokens":120}}`)
	}))
}

// Paid calls: ten a second, five at a time, three a day. For several instances, the store is
// that of package fleet.
func ExampleProvider() {
	server := thankful()
	defer server.Close()

	provider, err := client.NewProvider(client.ProviderOptions{
		Name:  "maps",
		Store: memory.New(), // or fleet.Open("redis://localhost:6379", fleet.Options{})
		Limits: []*tidegate.Limit{
			client.Pace(10, time.Second),
			tidegate.MustLimit(tidegate.Spec{Name: "at-a-time", Events: 5, Period: time.Minute, Algorithm: tidegate.Concurrency}),
			tidegate.MustLimit(tidegate.Spec{Name: "budget", Events: 3, Algorithm: tidegate.Quota, Calendar: tidegate.Day}),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	maps := &http.Client{Transport: provider.Transport()}
	for range 4 {
		res, err := maps.Get(server.URL)
		if errors.Is(err, client.ErrLimit) {
			fmt.Println("the budget of the day is used up")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	// Output:
	// 200
	// 200
	// 200
	// the budget of the day is used up
}

// Tokens of a language model: 10,000 a minute. A call reserves what it may use at most, and
// gives back what it did not.
func ExampleProvider_tokens() {
	server := thankful()
	defer server.Close()

	tokens := tidegate.MustLimit(tidegate.Spec{
		Name: "tokens", Events: 10_000, Period: time.Minute, Algorithm: tidegate.TokenBucket,
		Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.body.usage.total_tokens"}},
	})
	store := memory.New()
	provider, err := client.NewProvider(client.ProviderOptions{
		Name: "llm", Store: store, Limits: []*tidegate.Limit{tokens},
		Cost: func(r *http.Request) int64 { return 4000 + r.ContentLength/4 }, // max_tokens, and the prompt
	})
	if err != nil {
		log.Fatal(err)
	}
	llm := &http.Client{Transport: provider.Transport()}
	for range 10 { // 40,000 at most, and 1,200 in fact
		res, err := llm.Post(server.URL, "application/json", strings.NewReader(`{"max_tokens":4000}`))
		if err != nil {
			log.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	used := 10_000 - tidegate.New(store, tokens).Peek(context.Background(), tidegate.Key("llm")).Remaining
	fmt.Println(used > 1000 && used <= 1200)
	// Output: true
}

// Webhooks: every receiver has a rate and slots of its own, so that a slow one holds up
// nobody else.
func ExampleProvider_webhooks() {
	server := thankful()
	defer server.Close()

	provider, err := client.NewProvider(client.ProviderOptions{
		Name: "webhooks", Store: memory.New(),
		Key: func(r *http.Request) string { return r.URL.Host },
		Limits: []*tidegate.Limit{
			tidegate.MustLimit(tidegate.Spec{Name: "rate", Events: 20, Period: time.Second, Algorithm: tidegate.TokenBucket, Burst: 5}),
			tidegate.MustLimit(tidegate.Spec{Name: "at-a-time", Events: 3, Period: time.Minute, Algorithm: tidegate.Concurrency}),
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	hooks := &http.Client{Transport: provider.Transport(), Timeout: time.Minute}
	req, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(`{"event":"order.paid"}`))
	req.Header.Set("Idempotency-Key", "order-1-paid") // it may be sent again after a broken connection
	res, err := hooks.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	res.Body.Close()
	fmt.Println(res.StatusCode)
	// Output: 200
}

// A crawler: one page a second of each site, whatever the number of machines.
func ExampleProvider_crawler() {
	site := thankful()
	defer site.Close()

	provider, err := client.NewProvider(client.ProviderOptions{
		Name: "crawler", Store: memory.New(),
		Key:    func(r *http.Request) string { return r.URL.Hostname() },
		Limits: []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{Name: "pages", Events: 1, Period: time.Second, Algorithm: tidegate.TokenBucket})},
	})
	if err != nil {
		log.Fatal(err)
	}
	crawler := &http.Client{Transport: provider.Transport()}
	began := time.Now()
	for _, page := range []string{"/a", "/b"} {
		res, err := crawler.Get(site.URL + page)
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
	}
	fmt.Println(time.Since(began) >= time.Second)
	// Output: true
}

// Limits, and how many instances share them, come from rules that operators can change while
// the program runs: a file here, or Redis, etcd, a web server.
func ExampleProvider_rules() {
	server := thankful()
	defer server.Close()
	dir, err := os.MkdirTemp("", "tidegate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "outbound.yaml")
	text := `
version: 1
instances: 5
rules:
  - { name: searches, match: GET /search, per: everyone, limits: 2/hour }
  - { name: all-calls, match: /, per: everyone, quota: 10000/day }
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	watched, err := source.Watch(context.Background(), file, source.Options{})
	if err != nil {
		log.Fatal(err) // every mistake of the file, with its line
	}
	defer watched.Close()
	store := fleet.Split(memory.New(), func() int { return watched.Live().Set().Instances() })
	provider, err := client.NewProvider(client.ProviderOptions{Name: "maps", Store: store, Rules: watched.Live()})
	if err != nil {
		log.Fatal(err)
	}
	maps := &http.Client{Transport: provider.Transport()}
	for _, path := range []string{"/search", "/search", "/search", "/tiles"} {
		res, err := maps.Get(server.URL + path)
		if err != nil {
			fmt.Println(path, errors.Is(err, client.ErrLimit))
			continue
		}
		res.Body.Close()
		fmt.Println(path, res.StatusCode)
	}
	// Output:
	// /search 200
	// /search 200
	// /search true
	// /tiles 200
}
