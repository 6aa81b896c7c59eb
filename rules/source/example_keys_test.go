package source_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

// Customers are known by API keys, whose hashes are in a file that is followed, too. Requests
// with a key that is not in it are refused.
func Example_apiKeys() {
	dir, err := os.MkdirTemp("", "tidegate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	keys := filepath.Join(dir, "api-keys.csv")
	// printf %s secret-of-acme | sha256sum
	const file = "sha256,name,plan\na350aa34bafeb5432544ced04ca4343b2a46d239ceb8f0f4ba9e71a7d307feb2,acme,pro\n"
	if err := os.WriteFile(keys, []byte(file), 0o600); err != nil {
		log.Fatal(err)
	}

	followed, err := source.Watch(ctx, "../../docs/examples/api-keys.yaml", source.Options{
		Config: rules.Config{Trust: rules.Trust{
			APIKeys: &rules.APIKeys{From: "client header X-Api-Key", File: keys},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer followed.Close()
	handler := httplimit.Gate(tidegate.NewGate(followed.Live(), memory.New()))(http.NotFoundHandler())

	for _, key := range []string{"secret-of-acme", "invented"} {
		r := httptest.NewRequest(http.MethodGet, "/api/things", nil)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 404 "api";q=1000;w=60
	// 401
}
