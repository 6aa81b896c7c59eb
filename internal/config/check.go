package config

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
)

// check reports settings that contradict each other, or have no effect.
func (l *loader) check() {
	l.checkListen()
	l.checkUpstreams()
	l.checkTrust()
	l.checkStore()
	l.checkSnapshot()
	l.checkTLS()
	l.checkDefer()
	l.checkAdmin()
	l.checkDoorTLS("check.tls", l.config.Check.TLS)
	l.checkDoorTLS("resp.tls", l.config.RESP.TLS)
	l.checkDoorTLS("rls.tls", l.config.RLS.TLS)
	l.checkRLS()
	l.checkXDS()
	l.checkTelemetry()
	l.checkRulesSource()
	l.checkTimes()
	l.checkHealth()
	l.checkWritten()
}

// sound reports whether none of these settings was found to be wrong.
func (l *loader) sound(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return l.wrong[p] })
}

// clash reports that a setting contradicts others.
func (l *loader) clash(path string, s diag.Severity, message, hint string) {
	l.tell(l.config.origins[path], s, message, hint)
}

// clashItem is clash for one item of a list.
func (l *loader) clashItem(path string, item int, s diag.Severity, message, hint string) {
	l.tell(l.values[path][item].origin, s, message, hint)
}

// either returns which of two settings to report: the first if the operator has set it, otherwise
// the second.
func (l *loader) either(first, second string) string {
	if l.given(first) {
		return first
	}
	return second
}

// listener is a setting of Listen, and its address.
type listener struct {
	path string
	Address
}

// listeners returns all settings of Listen, also those that are off.
func (l *loader) listeners() []listener {
	listen := l.config.Listen
	return []listener{{"listen.gateway", listen.Gateway}, {"listen.check", listen.Check}, {"listen.resp", listen.RESP}, {"listen.rls", listen.RLS}, {"listen.rls_http", listen.RLSHTTP}, {"listen.admin", listen.Admin}}
}

// checkListen reports listeners at the same address, that none is open for clients, and doors that
// need authentication.
func (l *loader) checkListen() {
	all := l.listeners()
	for i, b := range all {
		for _, a := range all[:i] {
			if l.sound(a.path, b.path) && a.meets(b.Address) {
				l.clash(l.either(b.path, a.path), diag.Error,
					quote(a.path)+" "+quote(a.String())+" and "+quote(b.path)+" "+quote(b.String())+" are the same place",
					"give them different ports")
			}
		}
	}
	listen := l.config.Listen
	if l.sound("listen.gateway", "listen.check", "listen.resp", "listen.rls") && !listen.Gateway.Open() && !listen.Check.Open() && !listen.RESP.Open() && !listen.RLS.Open() {
		l.clash("listen.gateway", diag.Error, "`listen.gateway` is off, and nothing else is open for anybody to ask", "open `listen.check`, `listen.resp` or `listen.rls`")
	}
	l.checkOpen("listen.check", listen.Check, "token", "check.token_file", "check.tls.client_ca", l.config.Check.TokenFile, l.config.Check.TLS.ClientCA)
	l.checkOpen("listen.resp", listen.RESP, "password", "resp.users_file", "resp.tls.client_ca", l.config.RESP.UsersFile, l.config.RESP.TLS.ClientCA)
}

// checkOpen reports a listener that other machines can reach without authentication.
func (l *loader) checkOpen(path string, at Address, secret, file, authorities, fileGiven, authoritiesGiven string) {
	if !l.sound(path) || !at.Open() || at.Local() || fileGiven != "" || authoritiesGiven != "" || !l.sound(file, authorities) {
		return
	}
	l.clash(path, diag.Error,
		quote(path)+" can be reached from other machines, and asks for no "+secret+": "+quote(at.String()),
		"name a file with a "+secret+" in "+quote(file)+", or listen on "+quote("127.0.0.1:"+at.port()))
}

// checkUpstreams reports upstreams that are listeners of this process.
func (l *loader) checkUpstreams() {
	if !l.sound("upstreams", "listen.gateway", "listen.check", "listen.resp", "listen.rls", "listen.rls_http", "listen.admin") {
		return
	}
	for i, u := range l.config.Upstreams {
		host, port := u.Hostname(), portOf(u)
		for _, d := range l.listeners() {
			switch {
			case !d.reachedAt(host, port):
			case d.path == "listen.gateway":
				l.clashItem("upstreams", i, diag.Error, "the upstream "+quote(u.String())+" is the gateway itself, which would send requests to itself forever",
					"name the server behind it, or move `listen.gateway`")
			default:
				l.clashItem("upstreams", i, diag.Error, "the upstream "+quote(u.String())+" is the "+listenerNames[d.path]+", which is not for clients",
					"name the server behind the gateway, or move "+quote(d.path))
			}
		}
	}
}

var listenerNames = map[string]string{"listen.check": "check API", "listen.resp": "RESP listener", "listen.rls": "rate limit service", "listen.rls_http": "HTTP side of the rate limit service", "listen.admin": "admin listener"}

// checkTrust reports settings of trust that are risky, contradict each other, or have no effect.
func (l *loader) checkTrust() {
	trust := l.config.Trust
	for i, p := range trust.Proxies {
		if p.Bits() == 0 && l.sound("trust.proxies") {
			l.clashItem("trust.proxies", i, diag.Warning, quote(p.String())+" is everybody: any client can say in X-Forwarded-For who it is, and escape limits per address",
				"name the networks of your own proxies")
		}
	}
	l.checkKeys()
	if !l.sound("trust.jwt.jwks", "trust.jwt.key") {
		return
	}
	switch jwt := trust.JWT; {
	case jwt.JWKS != "" && jwt.Key != "":
		l.clash("trust.jwt.key", diag.Error, "`trust.jwt.jwks` and `trust.jwt.key` are both given, and tokens are verified by one of them",
			"keep the one that the issuer publishes; `jwks` may have several keys")
	case jwt.JWKS != "" || jwt.Key != "":
	case jwt.Issuer != "" || jwt.Audience != "":
		path := "trust.jwt.issuer"
		if jwt.Issuer == "" {
			path = "trust.jwt.audience"
		}
		l.clash(path, diag.Error, quote(path)+" is given, and no key to verify tokens with", "name a file in `trust.jwt.jwks` or in `trust.jwt.key`")
	}
}

// checkKeys reports settings of keys that have no effect without another.
func (l *loader) checkKeys() {
	trust := l.config.Trust
	if l.given("trust.api_keys.from") && trust.APIKeys.From != apikey.Usual && trust.APIKeys.File == "" && l.sound("trust.api_keys.from", "trust.api_keys.file") {
		l.clash("trust.api_keys.from", diag.Error, "`trust.api_keys.from` is given, and no file of keys", "name it in `trust.api_keys.file`; `tidegate api-keys add NAME` makes it")
	}
	for _, path := range []string{"trust.jwt.refresh", "trust.jwt.copy"} {
		s := lookup(path)
		text := strings.Join(s.slot.write(l.config), "")
		if l.given(path) && text != s.fallback && !jwt.IsURL(trust.JWT.JWKS) && l.sound(path, "trust.jwt.jwks") {
			l.clash(path, diag.Warning, quote(path)+" does nothing: it is about the keys of a URL", "name the URL in `trust.jwt.jwks`")
		}
	}
}

func (l *loader) checkTLS() {
	tls := l.config.TLS
	l.checkPair("tls", KeyPair{tls.Cert, tls.Key})
	switch {
	case !l.sound("tls.cert", "tls.key"):
	case tls.ClientCA != "" && tls.Cert == "" && tls.Key == "" && l.sound("tls.client_ca"):
		l.clash("tls.client_ca", diag.Error, "`tls.client_ca` is given, and the gateway does not speak TLS", "name its own certificate in `tls.cert` and `tls.key`")
	case tls.ClientAuth == Require && tls.ClientCA == "" && tls.Cert != "" == (tls.Key != "") && l.sound("tls.client_ca", "tls.client_auth"):
		l.clash("tls.client_auth", diag.Error, "`tls.client_auth` requires certificates that nothing verifies", "name a file with their authorities in `tls.client_ca`")
	}
}

func (l *loader) checkDoorTLS(path string, t DoorTLS) {
	l.checkPair(path, t.KeyPair)
	authorities := path + ".client_ca"
	if t.ClientCA != "" && t.Cert == "" && t.Key == "" && l.sound(authorities, path+".cert", path+".key") {
		l.clash(authorities, diag.Error, quote(authorities)+" is given, and its listener does not speak TLS",
			"name its own certificate in "+quote(path+".cert")+" and "+quote(path+".key"))
	}
}

// checkPair reports a certificate without its key, and a key without its certificate.
func (l *loader) checkPair(path string, pair KeyPair) {
	cert, key := path+".cert", path+".key"
	switch {
	case !l.sound(cert, key):
	case pair.Cert != "" && pair.Key == "":
		l.clash(cert, diag.Error, quote(cert)+" is given without its key", "name the file with the private key in "+quote(key))
	case pair.Key != "" && pair.Cert == "":
		l.clash(key, diag.Error, quote(key)+" is given without its certificate", "name the file with the certificate in "+quote(cert))
	}
}

// checkTimes reports times that contradict each other.
func (l *loader) checkTimes() {
	limits, health := l.config.Limits, l.config.Health
	if l.sound("limits.read", "limits.read_header") && limits.Read > 0 && limits.ReadHeader > limits.Read {
		l.clash("limits.read_header", diag.Error, "`limits.read_header` is longer than `limits.read`, which is for header and body together",
			"make it at most "+quote(writeDuration(limits.Read)))
	}
	if l.sound("limits.write", "limits.upstream") && limits.Write > 0 && limits.Write <= limits.Upstream {
		l.clash("limits.write", diag.Warning, "`limits.write` is not longer than `limits.upstream`: the connection is cut before a client can be told that the upstream is slow",
			"make it longer than "+quote(writeDuration(limits.Upstream)))
	}
	if l.sound("health.timeout", "health.every") && health.Timeout > health.Every {
		l.clash("health.timeout", diag.Error, "`health.timeout` is longer than `health.every`: a probe would begin before the last one has ended",
			"make it at most "+quote(writeDuration(health.Every)))
	}
}

// checkSnapshot reports an interval for snapshots without a file.
func (l *loader) checkSnapshot() {
	const every, file = "store.memory.snapshot_every", "store.memory.snapshot"
	memory := l.config.Store.Memory
	changed := l.given(every) && memory.SnapshotEvery > 0 && lookup(every).slot.write(l.config)[0] != lookup(every).fallback
	if changed && memory.Snapshot == "" && l.config.Store.Kind == InMemory && l.sound(every, file) {
		l.clash(every, diag.Warning, quote(every)+" does nothing: there is no file to write to", "name one in "+quote(file))
	}
}

// checkHealth reports settings that have no effect without health.path.
func (l *loader) checkHealth() {
	for _, path := range []string{"health.every", "health.timeout"} {
		s := lookup(path)
		changed := l.given(path) && s.slot.write(l.config)[0] != s.fallback
		if changed && l.config.Health.Path == "" && l.sound(path, "health.path") {
			l.clash(path, diag.Warning, quote(path)+" does nothing: upstreams are probed only if there is a `health.path`", "set `health.path`, as in `path: /healthz`")
		}
	}
}

// warnNoRules warns about a start without rules, unless that was asked for, or the process does not
// start.
func (l *loader) warnNoRules() {
	if len(l.config.Rules) > 0 || l.config.XDS.Address != "" || l.given("rules") || l.o.OwnRules || l.problems.HasErrors() {
		return
	}
	l.problems.Add(diag.Problem{
		Pos: diag.Pos{File: l.config.File}, Severity: diag.Warning,
		Message: "there are no rules: nothing is limited",
		Hint:    "write them into " + quote(l.besideFile(defaultRules)) + ", or name another file with `rules`",
	})
}
