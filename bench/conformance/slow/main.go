// Command slow attacks the gateway with clients that stall: slowhttptest's slow heads,
// bodies and reads over HTTP/1, plain and in TLS, and a hundred streams of HTTP/2 with half-sent
// bodies and without a window. It fails unless honest clients are served throughout, and
// every attacker is gone two seconds after the limit that ends it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

// The limits of the gateway, and how many attack it.
const (
	readHeader = 10 * time.Second
	stall      = 5 * time.Second
	leeway     = 2 * time.Second // after the limit
	attackers  = 100
)

// rules has slots that an attack can hold, and that honest clients do not need.
var rules = fmt.Sprintf(`version: 1
rules:
  - { name: held, match: /held/, per: everyone, concurrency: { slots: %d, lease: 1h } }
`, attackers)

func main() { rig.Main("slow", 10*time.Minute, run) }

// attack is one kind of attack, by many clients.
type attack struct {
	name  string
	limit time.Duration // that ends it
	// run attacks url until all attackers are gone, and returns how long the last was there.
	run func(ctx context.Context, url string) (time.Duration, error)
}

var attacks = []attack{
	{"slowhttptest -H, slow heads", readHeader, slowhttptest("/", "-H", "-i", "3")},
	{"slowhttptest -B, slow bodies", stall, slowhttptest("/", "-B", "-i", "60", "-s", "8192")},
	{"slowhttptest -X, slow reads", stall, slowhttptest("/big", "-X", "-n", "5", "-w", "1", "-y", "512", "-z", "32")},
	{"the same, of a small answer", stall, slowhttptest("/small", "-X", "-n", "5", "-w", "1", "-y", "512", "-z", "32")},
	{"HTTP/2 streams with half-sent bodies", stall, streams(1<<16, true)},
	{"HTTP/2 streams without a window", stall, streams(0, false)},
}

func run(ctx context.Context, _ []string, out io.Writer) error {
	dir, program, err := served.BuildTemp(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cert, key, err := served.Certificate(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return err
	}
	upstream := httptest.NewServer(http.HandlerFunc(answer))
	defer upstream.Close()
	flags := []string{"--upstreams=" + upstream.URL, "--rules=" + file, "--limits.read_header=" + readHeader.String(), "--limits.stall=" + stall.String()}
	missed := 0
	for _, way := range []struct {
		name  string
		http2 bool
		flags []string
	}{
		{"plain", false, nil},
		{"in TLS", true, []string{"--tls.cert=" + cert, "--tls.key=" + key}},
	} {
		gateway, err := served.Start(ctx, program, append(flags, way.flags...)...)
		if err != nil {
			return err
		}
		for _, a := range attacks {
			if strings.HasPrefix(a.name, "HTTP/2") && !way.http2 {
				continue
			}
			rig.Progress("%s, %s", a.name, way.name)
			if err := a.against(ctx, gateway, way.name, out); err != nil {
				fmt.Fprintf(out, "missed: %s, %s: %v\n", a.name, way.name, err)
				missed++
			}
		}
		gateway.Stop()
	}
	if missed > 0 {
		return rig.ErrMissed
	}
	return nil
}

// against runs the attack while honest clients ask, and prints the result.
func (a attack) against(ctx context.Context, g *served.Gateway, way string, out io.Writer) error {
	before, err := goroutines(g)
	if err != nil {
		return err
	}
	h := startHonest(g.URL)
	took, err := a.run(ctx, g.URL)
	served, failed := h.stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-38s %-7s %d attackers gone after %4.1fs (limit %s), honest requests: %d served, %d not\n",
		a.name, way, attackers, took.Seconds(), a.limit, served, len(failed))
	switch {
	case took > a.limit+leeway:
		return fmt.Errorf("the last attacker was there for %s, which is more than %s and %s", took.Round(time.Millisecond), a.limit, leeway)
	case len(failed) > 0:
		return fmt.Errorf("an honest request was not served: %s", failed[0])
	case served < int(took/time.Second):
		return fmt.Errorf("no more than %d honest requests were served", served)
	case !g.Alive():
		return fmt.Errorf("the gateway has ended")
	}
	return settled(g, before)
}

// A big answer is more than the kernel buffers, a small one more than the attackers' windows.
var big = bytes.Repeat([]byte("big answer "), 800_000)

const small = 60_000

// answer is the upstream's.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	switch r.URL.Path {
	case "/big":
		_, _ = w.Write(big)
	case "/small":
		_, _ = w.Write(big[:small])
	default:
		_, _ = io.WriteString(w, "hello")
	}
}
