//go:build unix

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	xdsserver "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	rlsconfig "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// controlPlane is one of go-control-plane, on a socket.
type controlPlane struct {
	t     *testing.T
	cache cache.SnapshotCache
	grpc  *grpc.Server
	mu    sync.Mutex
	told  string // why the last response was refused; "" if it was accepted
	acked string // the version that was accepted last
}

func newControlPlane(t *testing.T, socket string) *controlPlane {
	p := &controlPlane{t: t, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil), grpc: grpc.NewServer()}
	s := xdsserver.NewServer(t.Context(), p.cache, xdsserver.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told, p.acked = r.GetErrorDetail().GetMessage(), r.GetVersionInfo()
		return nil
	}})
	discovery.RegisterAggregatedDiscoveryServiceServer(p.grpc, s)
	os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = p.grpc.Serve(l) })
	t.Cleanup(func() { p.grpc.Stop(); served.Wait() })
	return p
}

// send makes one domain with a limit the state of the world.
func (p *controlPlane) send(version, domain string, unit rlsconfig.RateLimitUnit) {
	p.t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: {&rlsconfig.RateLimitConfig{
		Name: domain, Domain: domain,
		Descriptors: []*rlsconfig.RateLimitDescriptor{{Key: "user", RateLimit: &rlsconfig.RateLimitPolicy{Unit: unit, RequestsPerUnit: 3}}},
	}}})
	if err == nil {
		err = p.cache.SetSnapshot(p.t.Context(), "edge", snapshot)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// await waits until the server has accepted a version, or refused one with that text.
func (p *controlPlane) await(version, refusal string) {
	p.t.Helper()
	testdep.Eventually(p.t, version+refusal, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.acked == version && (refusal == "") == (p.told == "") && strings.Contains(p.told, refusal)
	})
}

// asksRLS asks about a user, and returns the limit of the answer; 0 if there is none.
func asksRLS(t *testing.T, socket, domain, user string) (code ratelimit.RateLimitResponse_Code, limit uint32) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{
		Domain: domain, Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: user}}}},
	}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return r.GetOverallCode(), r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit()
}

// Rules of a control plane are in force as long as it does not send better ones.
func testControlPlane(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", "domain: mine\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 7 } }]\n")
	at, rls := filepath.Join(w.dir, "xds.sock"), filepath.Join(w.dir, "rls.sock")
	args := []string{
		"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--listen.rls=unix:" + rls,
		"--xds.address=unix:" + at, "--xds.node_id=edge", "--xds.wait=200ms",
	}
	refused := w.serve("", nil, args...)
	if code := refused.end(); code == 0 {
		t.Error("it starts without its control plane")
	}
	if text := refused.logText(); !strings.Contains(text, "no rules within 200ms") || !strings.Contains(text, "xds.start") {
		t.Errorf("it says:\n%s", text)
	}

	s := w.serve("", nil, append(args, "--xds.start=without")...)
	_, admin := s.ready()
	s.await(1, "starting without rules of the control plane: they take effect as soon as it sends some")
	if _, body := w.get(once, admin+"/healthz"); !strings.Contains(body, "is not reached") {
		t.Errorf("/healthz: %s", body)
	}
	if _, limit := asksRLS(t, rls, "mine", "ann"); limit != 7 {
		t.Errorf("a domain of files: %d", limit)
	}
	if _, limit := asksRLS(t, rls, "shop", "ann"); limit != 0 {
		t.Errorf("a domain that nobody has: %d", limit)
	}

	p := newControlPlane(t, at)
	p.send("1", "shop", rlsconfig.RateLimitUnit_YEAR) // none of the calls is in another
	p.await("1", "")
	var codes []string
	for range 4 {
		code, limit := asksRLS(t, rls, "shop", "ann")
		codes = append(codes, fmt.Sprint(code, limit))
	}
	if got := strings.Join(codes, " "); got != "OK 3 OK 3 OK 3 OVER_LIMIT 3" {
		t.Errorf("calls: %s", got)
	}
	if _, limit := asksRLS(t, rls, "mine", "ann"); limit != 7 {
		t.Errorf("a domain of files beside: %d", limit)
	}

	p.send("2", "shop", rlsconfig.RateLimitUnit_UNKNOWN)
	p.await("1", "unit: unknown\n          ^^^^^^^")
	p.send("3", "mine", rlsconfig.RateLimitUnit_DAY)
	p.await("1", "is in the rule files of Tidegate already")
	if code, _ := asksRLS(t, rls, "shop", "ann"); code != ratelimit.RateLimitResponse_OVER_LIMIT {
		t.Errorf("after a refusal: %v", code)
	}
	var is struct {
		XDS struct {
			Version, Error string
			Rejected       int
			Connected      bool
		}
	}
	if _, body := w.get(once, admin+"/rules"); json.Unmarshal([]byte(body), &is) != nil || is.XDS.Version != "1" || is.XDS.Error == "" || is.XDS.Rejected < 2 || !is.XDS.Connected {
		t.Errorf("/rules: %s", body)
	}
	for path, want := range map[string]string{"/healthz": "were refused", "/readyz": "were refused", "/metrics": "tidegate_xds_current 0"} {
		if _, body := w.get(once, admin+path); !strings.Contains(body, want) {
			t.Errorf("%s has no %q: %s", path, want, body)
		}
	}

	p.send("4", "shop", rlsconfig.RateLimitUnit_DAY)
	p.await("4", "")
	const mine = "domain: %s\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 9 } }]\n"
	w.write("rules.yaml", fmt.Sprintf(mine, "shop")) // a file that gets the domain later is what holds
	testdep.Eventually(t, "the file", func() bool { _, limit := asksRLS(t, rls, "shop", "cleo"); return limit == 9 })
	if _, body := w.get(once, admin+"/healthz"); !strings.Contains(body, "that of the files is in force") {
		t.Errorf("/healthz: %s", body)
	}
	w.write("rules.yaml", fmt.Sprintf(mine, "mine"))
	testdep.Eventually(t, "the file", func() bool { _, limit := asksRLS(t, rls, "shop", "cleo"); return limit == 3 })
	if _, body := w.get(once, admin+"/metrics"); !strings.Contains(body, `rule="shop.user"`) {
		t.Error("the metrics have no rule of the control plane")
	}
	s.signal(syscall.SIGUSR2)
	s.await(1, upgradedLine)
	if _, limit := asksRLS(t, rls, "shop", "bob"); limit != 3 {
		t.Errorf("after an upgrade: %d", limit)
	}
	p.grpc.Stop()
	if _, limit := asksRLS(t, rls, "shop", "bob"); limit != 3 {
		t.Errorf("without a control plane: %d", limit)
	}
}
