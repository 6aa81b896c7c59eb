package serve

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// announce logs where the server listens, its upstreams, and what can be tried.
func (s *server) announce() {
	for _, unused := range s.heir.Unused() {
		s.log.Warn("an inherited socket is not used: its name should be gateway, check, resp, rls, rls_http or admin", "socket", unused)
	}
	var upstreams []string
	for _, u := range s.gateway.upstreams {
		upstreams = append(upstreams, u.String())
	}
	var where []any
	if s.gateway.listener != nil {
		where = append(where, "gateway", s.address(s.gateway.listener, s.gateway.tls.certificate != nil))
	}
	if l := s.checkDoor.listener; l != nil {
		where = append(where, "check", s.address(l, s.checkDoor.tls.certificate != nil))
	}
	if l := s.respDoor.listener; l != nil {
		where = append(where, "resp", redisAddress(l, s.respDoor.tls.certificate != nil))
	}
	if l := s.rlsDoor.listener; l != nil {
		where = append(where, "rls", grpcAddress(l, s.rlsDoor.tls.certificate != nil))
	}
	if l := s.rlsDoor.http; l != nil {
		where = append(where, "rls_http", s.address(l, false))
	}
	where = append(where, "admin", s.address(s.admin.listener, s.admin.tls.certificate != nil))
	s.log.Info("serving", append(where,
		"upstreams", strings.Join(upstreams, ","), "rules", s.rules.count(), "store", s.config.Store.Kind, "configuration", s.config.File)...)
	if s.example.upstream == nil {
		return
	}
	if !s.example.asked {
		s.log.Warn("there are no upstreams: requests go to a small API to try; name your own with --upstreams")
		return
	}
	if !s.heir.Follows() {
		s.invite()
	}
}

// makeTraffic has some invented clients ask again and again, so that the dashboard has something to
// show. Their requests are only decided: nothing is sent, and nothing is in the access log.
func (s *server) makeTraffic() {
	if s.gate == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.example.endTraffic = stop
	go demo.Traffic(ctx, func(method, path, ip string) {
		s.gate.Decide(ctx, &tidegate.Request{Method: method, Host: "demo", Path: path, Values: address(ip), Unattended: true})
	})
}

// address is the address of a caller, and all that is known about the caller.
type address string

// Value implements [tidegate.Values].
func (a address) Value(name string) (string, bool) {
	return string(a), name == "ip" || strings.HasPrefix(name, "ip ")
}

// invite prints where the dashboard is and, if the rules are the example's, what to try; then it
// makes traffic.
func (s *server) invite() {
	at := s.address(s.admin.listener, s.admin.tls.certificate != nil)
	demo.Greet(s.out(), at)
	file := strings.Join(s.config.Rules, ",")
	if file != "" {
		if text, err := bounded.ReadFile(file, int64(len(demo.Rules))); err != nil || !bytes.Equal(text, demo.Rules) {
			return
		}
	}
	demo.Invite(s.out(), demo.Place{Gateway: s.address(s.gateway.listener, s.gateway.tls.certificate != nil), Admin: at, Program: program(), Rules: file})
	s.makeTraffic()
}

// program returns the name by which this program was called.
func program() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return os.Args[0]
	}
	return "tidegate"
}

// address returns the URL of a listener as seen from this machine.
func (s *server) address(l net.Listener, tls bool) string {
	if tls {
		return urlOf("https", l)
	}
	return urlOf("http", l)
}

// redisAddress is address for Redis clients.
func redisAddress(l net.Listener, tls bool) string {
	if tls {
		return urlOf("rediss", l)
	}
	return urlOf("redis", l)
}

// grpcAddress is address for Envoy.
func grpcAddress(l net.Listener, tls bool) string {
	if tls {
		return urlOf("grpcs", l)
	}
	return urlOf("grpc", l)
}

func urlOf(scheme string, l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(host, port))
}
