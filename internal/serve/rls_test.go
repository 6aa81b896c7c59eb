//go:build unix

package serve

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const rlsRules = `domain: d
descriptors:
  - { key: fixed, rate_limit: { unit: hour, requests_per_unit: 1000 } }
  - { key: few, rate_limit: { unit: year, requests_per_unit: 3 } }
`

// rlsAny are flags for ports that the system chooses.
var rlsAny = []string{"--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.rls=127.0.0.1:0", "--listen.rls_http=127.0.0.1:0"}

// rlsReady waits for the listeners.
func (s *serving) rlsReady() (rls, web, admin string) {
	s.w.Helper()
	line := s.await(1, "serving")
	return strings.TrimPrefix(line["rls"].(string), "grpc://"), line["rls_http"].(string), line["admin"].(string)
}

// envoyClient is a client as Envoy is one.
func envoyClient(t testing.TB, addr string) (pb.RateLimitServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewRateLimitServiceClient(conn), conn
}

// askedOf is a call with descriptors of one entry each, written key=value.
func askedOf(domain string, descriptors ...string) *pb.RateLimitRequest {
	in := &pb.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		key, value, _ := strings.Cut(text, "=")
		in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}}})
	}
	return in
}

// The rate limit service of a process: rules that change, HTTP, metrics, health at the end.
func TestRLS(t *testing.T) {
	w := newSandbox(t, testdep.Command(t))
	if err := os.Mkdir(filepath.Join(w.dir, "rules"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("rules/a.yaml", rlsRules)
	s := w.serve("", nil, append(rlsAny, "--rules=rules", "--rls.metrics=envoyproxy", "--drain=10s")...)
	addr, web, admin := s.rlsReady()
	client, conn := envoyClient(t, addr)
	ask := func(domain string, descriptors ...string) string {
		t.Helper()
		out, err := client.ShouldRateLimit(context.Background(), askedOf(domain, descriptors...))
		if err != nil {
			t.Fatal(err)
		}
		return out.OverallCode.String()
	}
	for _, want := range []string{"OK", "OK", "OK", "OVER_LIMIT", "OVER_LIMIT"} {
		if got := ask("d", "few=x"); got != want {
			t.Errorf("answered %s, want %s", got, want)
		}
	}
	// A file that is dropped into the folder is in force without a restart.
	if got := ask("reload", "block=x"); got != "OK" {
		t.Errorf("an unknown domain is answered %s", got)
	}
	w.write("rules/b.yaml", "domain: reload\ndescriptors:\n  - { key: block, rate_limit: { unit: second, requests_per_unit: 0 } }\n")
	w.until("the new domain is known", func() bool { return ask("reload", "block=x") == "OVER_LIMIT" })
	// A bad one is not, and all others stay.
	w.write("rules/c.yaml", "domain: c\ndescriptors:\n  - { key: k, rate_limit: { unit: foo, requests_per_unit: 1 } }\n")
	w.until("the failed reload is counted", func() bool {
		_, page := w.get(once, admin+"/metrics")
		return strings.Contains(page, `ratelimit_service_config_load_error 1`) && strings.Contains(page, `tidegate_rules_reloads_total{outcome="failed"} 1`)
	})
	if got := ask("reload", "block=x") + ask("d", "few=x"); got != "OVER_LIMITOVER_LIMIT" {
		t.Errorf("after a bad file: %s", got)
	}
	_, page := w.get(once, admin+"/metrics")
	for _, line := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="d",key1="few",key2=""} 6`,
		`ratelimit_service_rate_limit_over_limit{domain="d",key1="few",key2=""} 3`,
		`ratelimit_service_rate_limit_within_limit{domain="d",key1="few",key2=""} 3`,
		`ratelimit_service_rate_limit_near_limit{domain="d",key1="few",key2=""} 1`,
		`tidegate_requests_total{door="rls",outcome="ok"}`,
		`tidegate_decisions_total{outcome="refused",rule="d.few"} 3`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("metrics have no %s", line)
		}
	}
	res, err := once.Post(web+"/json", "application/json", strings.NewReader(`{"domain":"d","descriptors":[{"entries":[{"key":"few","value":"x"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("POST /json: %d", res.StatusCode)
	}
	if got, body := w.get(once, web+"/rlconfig"); got != 200 || !strings.Contains(body, "d.few: unit=YEAR requests_per_unit=3, shadow_mode: false, quota_mode: false") {
		t.Errorf("/rlconfig: %d %s", got, body)
	}
	if err := os.Remove(filepath.Join(w.dir, "rules/c.yaml")); err != nil {
		t.Fatal(err)
	}
	// An upgrade loses no counter.
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	w.until("the successor answers", func() bool {
		out, err := client.ShouldRateLimit(context.Background(), askedOf("d", "few=x"))
		if err != nil {
			return false
		}
		if out.OverallCode != pb.RateLimitResponse_OVER_LIMIT {
			t.Fatalf("after the upgrade: %v", out)
		}
		return true
	})
	health := healthpb.NewHealthClient(conn)
	watch, err := health.Watch(context.Background(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		if got, err := watch.Recv(); err != nil || got.Status != want {
			t.Fatalf("health is %v, %v, want %v", got, err, want)
		}
		if want == healthpb.HealthCheckResponse_SERVING {
			successor := s.await(1, upgradedLine)["successor"].(float64)
			if err := syscall.Kill(int(successor), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("at the end who watches is told %v", err)
	}
}

// TLS with certificates of callers: one without, or with that of somebody else, is not served, and
// what is in the files counts from then on.
func TestRLSWithCertificates(t *testing.T) {
	cert, key := newCertificate(t, "rls")
	first, second := testdep.NewCertificate(t, "first", nil), testdep.NewCertificate(t, "second", nil)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", rlsRules, "cert.pem", cert, "key.pem", key, "callers.pem", first.PEM())
	s := w.serve("", nil, "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.rls=127.0.0.1:0", "--rules=rules.yaml",
		"--rls.tls.cert=cert.pem", "--rls.tls.key=key.pem", "--rls.tls.client_ca=callers.pem")
	addr := strings.TrimPrefix(s.await(1, "serving")["rls"].(string), "grpcs://")
	served := func(by *testdep.Certificate) bool {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true}
		if by != nil { // whatever the server asks for
			own := testdep.NewCertificate(t, "envoy", by).TLS()
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err = pb.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, askedOf("d", "fixed=x"))
		if err != nil && status.Code(err) != codes.Unavailable {
			t.Errorf("%v", err)
		}
		return err == nil
	}
	if served(nil) || served(second) || !served(first) {
		t.Error("not exactly those with a certificate of the authority are served")
	}
	w.write("callers.pem", second.PEM())
	w.until("the next authority is the one", func() bool { return served(second) })
	if served(first) {
		t.Error("the authority before is still one")
	}
	if plain, _ := envoyClient(t, addr); plain != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := plain.ShouldRateLimit(ctx, askedOf("d", "fixed=x")); status.Code(err) != codes.Unavailable {
			t.Errorf("without TLS: %v", err)
		}
	}
}

// askRLS asks the rate limit service of a server about a descriptor, without a network.
func askRLS(t *testing.T, s *server, domain, descriptor string) {
	t.Helper()
	if s.rlsDoor.server == nil {
		s.rlsDoor.server = s.newRLS(s.newRLQS())
	}
	if _, err := s.rlsDoor.server.ShouldRateLimit(t.Context(), askedOf(domain, descriptor)); err != nil {
		t.Fatal(err)
	}
}
