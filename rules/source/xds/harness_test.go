package xds

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// quick is a pace for tests that wait for a connection.
var quick = pace{least: time.Millisecond, most: 20 * time.Millisecond, steady: time.Hour, again: 10 * time.Millisecond, quiet: time.Millisecond}

const node = "envoy-ratelimit"

// plane is a control plane of go-control-plane, as Envoy Gateway has one.
type plane struct {
	t        *testing.T
	cache    cache.SnapshotCache
	listener net.Listener
	grpc     *grpc.Server

	mu       sync.Mutex
	requests []*discovery.DiscoveryRequest
}

// socket is an address that no other process is given.
func socket(t *testing.T) string {
	dir, err := os.MkdirTemp("", "xds") // t.TempDir may be longer than a socket can have
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return "unix:" + filepath.Join(dir, "s")
}

// listen serves register at an address until the test or stop ends it.
func listen(t *testing.T, address string, secure credentials.TransportCredentials, register func(*grpc.Server)) (*grpc.Server, net.Listener) {
	t.Helper()
	network, at := "tcp", address
	if path, ok := cutUnix(address); ok {
		network, at = "unix", path
		os.Remove(path)
	}
	l, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	s := grpc.NewServer(grpc.Creds(secure))
	register(s)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); served.Wait() })
	return s, l
}

func cutUnix(address string) (string, bool) {
	if len(address) > 5 && address[:5] == "unix:" {
		return address[5:], true
	}
	return "", false
}

func newPlane(t *testing.T, address string, secure credentials.TransportCredentials) *plane {
	p := &plane{t: t, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := server.NewServer(ctx, p.cache, server.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests = append(p.requests, r)
		return nil
	}})
	p.grpc, p.listener = listen(t, address, secure, func(g *grpc.Server) { discovery.RegisterAggregatedDiscoveryServiceServer(g, s) })
	return p
}

// serve makes configs the state of the world.
func (p *plane) serve(version string, configs ...*ratelimit.RateLimitConfig) {
	p.t.Helper()
	var all []types.Resource
	for _, c := range configs {
		all = append(all, c)
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(context.Background(), node, snapshot); err != nil {
		p.t.Fatal(err)
	}
}

// asked returns the requests so far.
func (p *plane) asked() []*discovery.DiscoveryRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*discovery.DiscoveryRequest(nil), p.requests...)
}

// last waits for a request that fits.
func (p *plane) last(what string, fits func(*discovery.DiscoveryRequest) bool) *discovery.DiscoveryRequest {
	p.t.Helper()
	var found *discovery.DiscoveryRequest
	testdep.Eventually(p.t, what, func() bool {
		if all := p.asked(); len(all) > 0 && fits(all[len(all)-1]) {
			found = all[len(all)-1]
		}
		return found != nil
	})
	return found
}

func acks(version string) func(*discovery.DiscoveryRequest) bool {
	return func(r *discovery.DiscoveryRequest) bool {
		return r.GetVersionInfo() == version && r.GetResponseNonce() != "" && r.GetErrorDetail() == nil
	}
}

func refuses(r *discovery.DiscoveryRequest) bool { return r.GetErrorDetail() != nil }

func follow(t *testing.T, address string, edit ...func(*Options)) *Watcher {
	return followAt(t, address, quick, edit...)
}

func followAt(t *testing.T, address string, p pace, edit ...func(*Options)) *Watcher {
	o := Options{Address: address, NodeID: node, Log: slog.New(slog.DiscardHandler)}
	for _, f := range edit {
		f(&o)
	}
	w := watch(context.Background(), o, p)
	t.Cleanup(w.Close)
	return w
}

func await(t *testing.T, w *Watcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Await(ctx); err != nil {
		t.Fatal(err)
	}
}

// config is a domain with a limit for each key.
func config(domain string, keys ...string) *ratelimit.RateLimitConfig {
	c := &ratelimit.RateLimitConfig{Name: domain, Domain: domain}
	for _, k := range keys {
		c.Descriptors = append(c.Descriptors, &ratelimit.RateLimitDescriptor{Key: k, RateLimit: limit(5, ratelimit.RateLimitUnit_HOUR)})
	}
	return c
}

func limit(n uint32, unit ratelimit.RateLimitUnit) *ratelimit.RateLimitPolicy {
	return &ratelimit.RateLimitPolicy{RequestsPerUnit: n, Unit: unit}
}
