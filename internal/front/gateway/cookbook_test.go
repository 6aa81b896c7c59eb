package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// cookbook returns a rule file of docs/cookbook.
func cookbook(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/cookbook/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The cost that a GraphQL server reports where docs/cookbook/graphql.yaml looks for it is charged, over
// HTTP/1 and HTTP/2. An answer that does not report it there keeps the estimate.
func TestGraphQLOfTheCookbook(t *testing.T) {
	f := func(http2 bool, answer string, next int) {
		t.Helper()
		config, pool := certificate(t)
		upstream := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
		g := start(t, Options{Gate: gateOf(t, cookbook(t, "graphql")), Upstreams: []*url.URL{upstream}}, config)
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP2(http2)
		tr.Protocols.SetHTTP1(!http2)
		defer tr.CloseIdleConnections()
		query := func(want int, text string) {
			t.Helper()
			r := newRequest(t, http.MethodPost, g.url+"/graphql", strings.NewReader(`{"query":"{ me }"}`))
			r.Header.Set("Content-Type", "application/json")
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != want || (res.ProtoMajor == 2) != http2 || !strings.Contains(string(body), text) {
				t.Errorf("%s %d %.200s %v; want %d after %.80s", res.Proto, res.StatusCode, body, err, want, answer)
			}
		}
		query(200, answer)
		if next == 200 {
			query(200, answer)
		} else {
			query(next, "policy points")
		}
	}
	const expensive = "100000" // a quarter of an hour's points, however busy the machine is
	for _, http2 := range []bool{false, true} {
		f(http2, `{"data":{"all":[]},"extensions":{"cost":{"actual":`+expensive+`}}}`, 429)
		f(http2, `{"extensions":{"cost":{"requested":1,"actual":`+expensive+`,"throttle":{}}},"data":{}}`, 429)
		f(http2, `{"data":{"me":"ann"},"extensions":{"cost":{"actual":3}}}`, 200)
		f(http2, `{"data":{"me":"ann"}}`, 200)
		f(http2, `{"data":{"cost":{"actual":`+expensive+`}}}`, 200)                                               // not where the rule looks
		f(http2, `{"data":"`+strings.Repeat("x", 2<<20)+`","extensions":{"cost":{"actual":`+expensive+`}}}`, 200) // beyond what is read
	}
}

// dialGRPC returns a connection to a gRPC service through a gateway with the rules in text.
func dialGRPC(t *testing.T, text string) *grpc.ClientConn {
	t.Helper()
	config, pool := certificate(t)
	s := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&config.Certificates[0])),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			in := new(emptypb.Empty)
			if err := stream.RecvMsg(in); err != nil {
				return err
			}
			if strings.HasSuffix(method, "/Cancel") {
				return status.Error(codes.NotFound, "no such order")
			}
			return stream.SendMsg(in)
		}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)

	upstreams := x509.NewCertPool()
	for _, c := range config.Certificates[0].Certificate {
		parsed, err := x509.ParseCertificate(c)
		if err != nil {
			t.Fatal(err)
		}
		upstreams.AddCert(parsed)
	}
	g := start(t, Options{
		Gate: gateOf(t, text), Upstreams: []*url.URL{parseURL(t, "https://"+l.Addr().String())},
		Transport: Transport{TLS: &tls.Config{RootCAs: upstreams}},
	}, config)
	conn, err := grpc.NewClient(g.addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// invoke makes a unary call.
func invoke(t *testing.T, conn *grpc.ClientConn, method string) (*status.Status, metadata.MD) {
	t.Helper()
	var trailer metadata.MD
	err := conn.Invoke(t.Context(), method, new(emptypb.Empty), new(emptypb.Empty), grpc.Trailer(&trailer))
	return status.Convert(err), trailer
}

// A gRPC client whose method is used up gets RESOURCE_EXHAUSTED, with the sentence and the time to come
// back, and not UNAVAILABLE, which clients try again at once. Other methods go on.
func TestGRPCOfTheCookbook(t *testing.T) {
	conn := dialGRPC(t, cookbook(t, "grpc"))
	f := func(method string, code codes.Code, message, retry string) {
		t.Helper()
		got, trailer := invoke(t, conn, method)
		after := strings.Join(trailer.Get("retry-after"), " ")
		if got.Code() != code || !strings.Contains(got.Message(), message) || (after == "") != (retry == "") {
			t.Errorf("%s: %v %q, retry-after %q, want %v %q", method, got.Code(), got.Message(), after, code, message)
		}
	}
	for range 5 {
		f("/shop.v1.Orders/Export", codes.OK, "", "")
	}
	for range 3 {
		f("/shop.v1.Orders/Export", codes.ResourceExhausted, "The quota of the policy export is used up; try again in ", "later")
	}
	f("/shop.v1.Orders/Create", codes.OK, "", "")
	f("/shop.v1.Orders/Cancel", codes.NotFound, "no such order", "")
	f("/shop.v1.Catalog/List", codes.OK, "", "")
}

// Clients of gRPC are told by the pushback when to retry, and not to where that would not help or would
// take long. One that does not say who is asking is UNAUTHENTICATED, as by grpclimit.
func TestGRPCPushback(t *testing.T) {
	conn := dialGRPC(t, `
version: 1
identify: { user: client header x-user }
rules:
  - { name: soon, match: POST /a.A/Soon, per: ip, limits: 1/30s }
  - { name: late, match: POST /a.A/Late, per: ip, limits: 1/hour }
  - { name: closed, match: POST /a.A/Closed, deny: true }
  - { name: bad, match: POST /a.A/Bad, deny: true, respond: { status: 400 } }
  - { name: known, match: POST /a.A/Known, per: user, missing: refuse, limits: 1/hour }
`)
	for _, method := range []string{"/a.A/Soon", "/a.A/Late"} {
		if got, trailer := invoke(t, conn, method); got.Code() != codes.OK || len(trailer.Get("grpc-retry-pushback-ms")) > 0 {
			t.Errorf("%s: %v, trailer %v", method, got, trailer)
		}
	}
	f := func(method string, code codes.Code, from, to int) {
		t.Helper()
		got, trailer := invoke(t, conn, method)
		told := strings.Join(trailer.Get("grpc-retry-pushback-ms"), " ")
		ms, err := strconv.Atoi(told)
		if got.Code() != code || err != nil || ms < from || ms > to {
			t.Errorf("%s: %v, pushback %q, want %v, from %d to %d", method, got, told, code, from, to)
		}
	}
	f("/a.A/Soon", codes.ResourceExhausted, 1, 30_000)
	f("/a.A/Late", codes.ResourceExhausted, -1, -1)
	f("/a.A/Closed", codes.PermissionDenied, -1, -1)
	f("/a.A/Bad", codes.InvalidArgument, -1, -1)
	f("/a.A/Known", codes.Unauthenticated, -1, -1)
}

// The same refusal is 429 to a client that asks for the same path over HTTP/1, whatever it says about
// the type.
func TestRefusalOfAMethodOverHTTP(t *testing.T) {
	g := before(t, cookbook(t, "grpc"), func(http.ResponseWriter, *http.Request) {})
	for i := range 6 {
		r := newRequest(t, http.MethodPost, g.url+"/shop.v1.Orders/Export", nil)
		r.Header.Set("Content-Type", "application/grpc")
		res, _ := do(t, r)
		if want := map[bool]int{true: 200, false: 429}[i < 5]; res.StatusCode != want || res.Header.Get("Grpc-Status") != "" {
			t.Errorf("%d: %d %v", i, res.StatusCode, res.Header)
		}
	}
}
