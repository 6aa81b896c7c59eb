package grpclimit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// asked is a Matcher that notes the values of some names.
type asked struct {
	names []string
	got   chan []string
}

func (a *asked) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	got := []string{r.Method, r.Host, r.Path}
	for _, name := range a.names {
		value, _ := r.Value(name)
		got = append(got, value)
	}
	a.got <- got
	return dst
}

// A gate reads of a call what it would read of the request that the call is.
func TestIdentities(t *testing.T) {
	f := func(o grpclimit.Options, md []string, names, want []string) {
		t.Helper()
		a := &asked{names, make(chan []string, 1)}
		server := o.Gate(tidegate.NewGate(a, memory.New()))
		client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), server.ServerOptions()...), grpc.WithAuthority("shop.example.com"))
		for i, kind := range calltest.Kinds {
			method := []string{"UnaryCall", "StreamingOutputCall", "StreamingInputCall", "FullDuplexCall"}[i]
			if answer := kind.Call(metadata.AppendToOutgoingContext(t.Context(), md...), client); answer.Err != nil {
				t.Fatal(answer.Err)
			}
			got := <-a.got
			if want := append([]string{"POST", "shop.example.com", "/grpc.testing.TestService/" + method}, want...); !slices.Equal(got, want) {
				t.Errorf("%s: %q is %q, want %q", kind.Name, names, got, want)
			}
		}
	}
	plain, trusting := grpclimit.Options{}, grpclimit.Options{ClientIP: httplimit.ClientIP{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	sent := []string{
		"x-user", "alice", "x-twice", "a", "x-twice", "b", "x-same", "a", "x-same", "a",
		"x-forwarded-for", "198.51.100.7, 203.0.113.9", "authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:secret")),
		"x-key-bin", "\x00\xff",
	}
	names := []string{"ip", "addr", "metadata x-user", "client header X-User", "header X-User", "metadata x-twice", "metadata x-same", "basic.user", "metadata x-key-bin", "ip /16 /48", "metadata :authority", "tls.client_cn", "body.user", "cookie user", "query user", "unknown"}
	f(plain, sent, names, []string{"127.0.0.1", "127.0.0.1", "alice", "alice", "", "", "a", "bob", "\x00\xff", "127.0.0.0/16", "", "", "", "", "", ""})
	f(trusting, sent, names, []string{"203.0.113.9", "203.0.113.9", "alice", "alice", "alice", "", "a", "bob", "\x00\xff", "203.0.0.0/16", "", "", "", "", "", ""})
	f(trusting, nil, []string{"ip", "metadata x-user"}, []string{"127.0.0.1", ""})
}

// The common name of a verified client certificate is an identity.
func TestClientCertificate(t *testing.T) {
	authority, pool := newAuthority(t)
	serverCert, clientCert := authority.issue(t, "server"), authority.issue(t, "billing")
	for _, verify := range []tls.ClientAuthType{tls.RequireAndVerifyClientCert, tls.RequestClientCert} {
		a := &asked{[]string{"tls.client_cn"}, make(chan []string, 1)}
		secure := grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{serverCert}, ClientCAs: pool, ClientAuth: verify}))
		server := grpclimit.Gate(tidegate.NewGate(a, memory.New()))
		addr := calltest.Serve(t, new(calltest.Service), append(server.ServerOptions(), secure)...)
		creds := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{clientCert}, RootCAs: pool, ServerName: "server"})
		if answer := calltest.Unary(t.Context(), calltest.Dial(t, addr, grpc.WithTransportCredentials(creds))); answer.Err != nil {
			t.Fatal(answer.Err)
		}
		want := ""
		if verify == tls.RequireAndVerifyClientCert {
			want = "billing"
		}
		if got := (<-a.got)[3]; got != want {
			t.Errorf("client certificate %v: got %q, want %q", verify, got, want)
		}
	}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) (*authority, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key}, pool
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Peers on a Unix socket are believed only if that is told.
func TestUnixSocket(t *testing.T) {
	for _, trust := range []bool{false, true} {
		listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		a := &asked{[]string{"ip"}, make(chan []string, 1)}
		o := grpclimit.Options{ClientIP: httplimit.ClientIP{TrustUnix: trust}}
		server := grpc.NewServer(o.Gate(tidegate.NewGate(a, memory.New())).ServerOptions()...)
		pb.RegisterTestServiceServer(server, new(calltest.Service))
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		client := calltest.Dial(t, "unix://"+listener.Addr().String())
		if answer := calltest.Unary(metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "203.0.113.9"), client); answer.Err != nil {
			t.Fatal(answer.Err)
		}
		want := "@"
		if trust {
			want = "203.0.113.9"
		}
		if got := (<-a.got)[3]; got != want {
			t.Errorf("trust %t: got %q, want %q", trust, got, want)
		}
	}
}

// Health checks and reflection are not limited, unless the program says so.
func TestExempt(t *testing.T) {
	for _, exempt := range []bool{true, false} {
		var o grpclimit.Options
		if !exempt {
			o.Exempt = func(string) bool { return false }
		}
		server := grpc.NewServer(o.Limit(tidegate.New(memory.New(), tidegate.PerHour(1)), grpclimit.Method).ServerOptions()...)
		healthpb.RegisterHealthServer(server, health.NewServer())
		reflection.Register(server)
		conn, err := grpc.NewClient(calltest.Listen(t, server), calltest.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		check := func(ctx context.Context) error {
			_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
			return err
		}
		list := func(ctx context.Context) error {
			stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			_ = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
			_, err = stream.Recv()
			return err
		}
		for name, call := range map[string]func(context.Context) error{"health": check, "reflection": list} {
			for i := range 5 {
				a := calltest.Answer{Err: call(t.Context())}
				if refused := a.Code() == codes.ResourceExhausted; refused != (!exempt && i > 0) {
					t.Errorf("%s, exempt %t, call %d: %v", name, exempt, i, a.Err)
				}
			}
		}
	}
}
