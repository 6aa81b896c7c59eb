package config

import (
	"net"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// headerName is a name that a header can have.
var headerName = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if strings.ContainsFunc(w.text, func(r rune) bool { return !headerRune(r) }) {
			return "", advised("is not the name of a header: "+quote(w.text), "")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

func headerRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// hostPort is the codec of the host and port of another server.
var hostPort = codec[string]{
	read: func(w rawValue) (string, mistake) {
		host, port, err := net.SplitHostPort(w.text)
		if strings.Contains(w.text, "://") || err != nil || host == "" {
			return "", notHostPort(w.text, "8081")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", advised("has no port from 1 to 65535: "+quote(w.text), "")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// envoyTimeout is when Envoy's filter gives up, unless it is told otherwise.
const envoyTimeout = 20 * time.Millisecond

// checkRLS reports settings of the rate limit service that are risky or contradict each other.
func (l *loader) checkRLS() {
	listen, rls := l.config.Listen, l.config.RLS
	if l.sound("listen.rls", "rls.tls.client_ca") && listen.RLS.Open() && !listen.RLS.Local() && rls.TLS.ClientCA == "" {
		l.clash("listen.rls", diag.Warning, "`listen.rls` can be reached from other machines and asks for no certificate: whoever connects can use up every limit: "+quote(listen.RLS.String()),
			"let only your proxies reach it, or name the authorities of their certificates in `rls.tls.client_ca`")
	}
	if l.sound("listen.rls_http", "listen.rls") && listen.RLSHTTP.Open() && !listen.RLS.Open() {
		l.clash("listen.rls_http", diag.Error, "`listen.rls_http` is open, and `listen.rls` is not", "open `listen.rls` as well")
	}
	if l.sound("listen.rls_http") && listen.RLSHTTP.Open() && !listen.RLSHTTP.Local() {
		l.clash("listen.rls_http", diag.Warning, "`listen.rls_http` can be reached from other machines: whoever connects can use up every limit, and read them: "+quote(listen.RLSHTTP.String()),
			"let only your own machines reach it")
	}
	if l.sound("rls.quota.ttl") && rls.Quota.TTL%time.Second != 0 {
		l.clash("rls.quota.ttl", diag.Error, "`rls.quota.ttl` is not in whole seconds, and Envoy reads no more of it: "+quote(writeDuration(rls.Quota.TTL)),
			"write "+quote(writeDuration(rls.Quota.TTL.Truncate(time.Second)+time.Second)))
	}
	if l.sound("rls.quota.ttl", "rls.quota.delivery") && rls.Quota.TTL < 2*rls.Quota.Delivery {
		l.clash("rls.quota.delivery", diag.Error, "`rls.quota.delivery` is more than half of `rls.quota.ttl`: an assignment could not be extended in time",
			"raise `rls.quota.ttl`")
	}
	if l.sound("listen.rls", "rls.deadline") && listen.RLS.Open() && rls.Deadline >= envoyTimeout && l.given("rls.deadline") {
		l.clash("rls.deadline", diag.Warning, "`rls.deadline` is not shorter than the 20ms after which Envoy's filter gives up by default",
			"set `timeout` of the filter to more than "+quote(writeDuration(rls.Deadline)))
	}
}
