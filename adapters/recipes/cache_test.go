package recipes

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/bartventer/httpcache"
	_ "github.com/bartventer/httpcache/store/memcache"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/client"
	"tidegate.dev/tidegate/store/memory"
)

// A page that is fresh in the private cache is neither a call nor a wait.
func Example_privateCache() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "a page")
	}))
	defer server.Close()

	provider, err := client.NewProvider(client.ProviderOptions{
		Name: "pages", Store: memory.New(), Limits: []*tidegate.Limit{client.Pace(1, time.Hour)},
	})
	if err != nil {
		log.Fatal(err)
	}
	cached := httpcache.NewTransport("memcache://", httpcache.WithUpstream(provider.Transport()))
	api := &http.Client{Transport: cached}
	for range 3 {
		res, err := api.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(string(text))
	}
	fmt.Println(calls, "call")
	// Output:
	// a page
	// a page
	// a page
	// 1 call
}

// A private cache around the Transport: hits are no calls and take nothing from a budget,
// revalidations are calls, and a refusal is not kept.
func TestCacheAroundTransport(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", map[string]string{"/fresh": "max-age=3600", "/stale": "no-cache"}[r.URL.Path])
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	}))
	defer server.Close()
	budget := tidegate.MustLimit(tidegate.Spec{Name: "budget", Events: 100, Algorithm: tidegate.Quota, Calendar: tidegate.Year})
	store := memory.New()
	provider, err := client.NewProvider(client.ProviderOptions{Name: "pages", Store: store, Limits: []*tidegate.Limit{budget}})
	if err != nil {
		t.Fatal(err)
	}
	api := &http.Client{Transport: httpcache.NewTransport("memcache://", httpcache.WithUpstream(provider.Transport()))}
	for range 5 {
		for _, path := range []string{"/fresh", "/stale"} {
			res, err := api.Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != http.StatusOK || string(text) != "page "+path {
				t.Errorf("%s: %d %q, %v", path, res.StatusCode, text, err)
			}
		}
	}
	const want = 1 + 1 + 5 // refused, fetched, and looked at each time
	if used := 100 - tidegate.New(store, budget).Peek(t.Context(), tidegate.Key("pages")).Remaining; calls != want || used != want {
		t.Errorf("%d calls were made and %d are charged, want %d", calls, used, want)
	}
}
