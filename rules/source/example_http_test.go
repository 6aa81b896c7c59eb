package source_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/golang-jwt/jwt/v5"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

var (
	ctx = context.Background()
	mux = http.NewServeMux()
)

// In front of an http.Handler, by the rules of a file. The middle of it is also
// in the README.
func Example_middleware() {
	dir, err := os.MkdirTemp("", "tidegate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "version: 1\nidentify: { user: jwt.sub }\nrules:\n  - { name: api, per: user, limits: 1/minute }\n"
	secret := []byte("a secret that signs the tokens of the example")
	for name, content := range map[string][]byte{"rules.yaml": []byte(text), "jwt.key": secret} {
		if err := os.WriteFile(dir+"/"+name, content, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	before, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	defer os.Chdir(before)

	followed, err := source.Watch(ctx, "rules.yaml", source.Options{ // loads, and reloads when it changes
		Config: rules.Config{Trust: rules.Trust{
			JWT: &rules.JWT{Key: "jwt.key"}, // verifies tokens; without it, nobody is a user
		}},
	})
	if err != nil {
		log.Fatal(err) // every mistake, with its line and what to write instead
	}
	defer followed.Close()

	gate := tidegate.NewGate(followed.Live(), memory.New())
	handler := httplimit.Gate(gate)(mux)

	for _, user := range []string{"ann", "ann", "bob"} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user}).SignedString(secret)
		if err != nil {
			log.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(user, w.Code)
	}
	// Output:
	// ann 404
	// ann 429
	// bob 404
}
