package jwt

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// publisher is a real server that publishes keys, and can be spoiled.
type publisher struct {
	t      *testing.T
	server *httptest.Server
	asked  atomic.Int64
	mu     sync.Mutex
	answer http.HandlerFunc
}

func publish(t *testing.T, ids ...string) *publisher {
	p := &publisher{t: t}
	p.publish(ids...)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

func (p *publisher) answers(f http.HandlerFunc) {
	p.mu.Lock()
	p.answer = f
	p.mu.Unlock()
}

func (p *publisher) publish(ids ...string) {
	text := setOf(ids...)
	p.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

// keyOf is the key of an id; the same in every run.
func keyOf(id string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", id)))
}

func setOf(ids ...string) string {
	var keys []string
	for _, id := range ids {
		keys = append(keys, fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q}`, id,
			base64.RawURLEncoding.EncodeToString(keyOf(id).Public().(ed25519.PublicKey))))
	}
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// signed is a token of the key of an id.
func signed(t *testing.T, id string) string {
	return sign(t, "EdDSA", keyOf(id), `{"alg":"EdDSA","kid":"`+id+`"}`, `{"sub":"alice"}`)
}

func remoteVerifier(t *testing.T, c Config) *Verifier {
	t.Helper()
	c.Now = atNoon
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// eventually is testdep.Eventually for less time than keys are refreshed in anyway.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !testdep.Await(minRefresh*2/3, cond) {
		t.Fatalf("not within %s: %s", minRefresh*2/3, what)
	}
}

// due makes the next fetch due now.
func (r *remote) makeDue() { r.due.Store(0) }

// idle waits until no fetch is under way.
func idle(t *testing.T, v *Verifier) {
	t.Helper()
	eventually(t, "no fetch under way", func() bool {
		v.remote.mu.Lock()
		defer v.remote.mu.Unlock()
		return v.remote.flight == nil
	})
}
