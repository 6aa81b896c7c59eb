package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// XDS is the control plane that sends rules of Envoy's rate limit service.
type XDS struct {
	Address    string        // host and port, or unix:PATH; default: none
	NodeID     string        // the name that it has rules for; default: default
	Metadata   []string      // key=value; default: none
	Wait       time.Duration // for the first rules, at the start; default: 10s
	Start      string        // RefuseStart or Without rules, if there are none by then; default: RefuseStart
	MaxMessage int64         // bytes of a response; default: 4 MiB
	TLS        XDSTLS
}

// XDSTLS is how the control plane is verified, and how it verifies this process. Without a CA
// the connection is in plain text.
type XDSTLS struct {
	CA   string // file with its authorities, in PEM, or SystemCA; default: none
	Cert string // file with the certificate to show, in PEM; default: none
	Key  string // file with its private key, in PEM; default: none
	Name string // that its certificate must have; default: the host of the address
}

// The words of [XDS].
const (
	RefuseStart = "refuse"
	Without     = "without"
	SystemCA    = "system" // the authorities that the system trusts
)

// planeAddress is the codec of the address of a control plane.
var planeAddress = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if path, ok := strings.CutPrefix(w.text, unixPrefix); ok {
			a, m := readSocket(w, strings.TrimPrefix(path, "//"))
			return unixPrefix + a.Address, m
		}
		host, port, err := net.SplitHostPort(w.text)
		if strings.Contains(w.text, "://") || err != nil || host == "" {
			return "", notHostPort(w.text, "18001")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", advised("has no port from 1 to 65535: "+quote(w.text), "")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// keyValue is an item of a list: key=value.
var keyValue = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if key, _, ok := strings.Cut(w.text, "="); !ok || key == "" {
			return "", advised("is not a key and its value: "+quote(w.text), "write `key=value`")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// authoritiesOrSystem is a file, or the word that stands for those of the system.
var authoritiesOrSystem = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if w.text == SystemCA {
			return SystemCA, mistake{}
		}
		return path.read(w)
	},
	write: func(v string) string { return v },
}

// checkXDS reports settings of the control plane that contradict each other or have no effect.
func (l *loader) checkXDS() {
	x := l.config.XDS
	if !l.sound("xds.address") {
		return
	}
	if x.Address == "" {
		for _, s := range table {
			if strings.HasPrefix(s.path, "xds.") && l.given(s.path) && s.path != "xds.address" && strings.Join(s.slot.write(l.config), ",") != s.fallback {
				l.clash(s.path, diag.Error, quote(s.path)+" is given, and no control plane", "name it in `xds.address`, as in `xds: { address: envoy-gateway:18001 }`")
				return
			}
		}
		return
	}
	l.checkPair("xds.tls", KeyPair{x.TLS.Cert, x.TLS.Key})
	for _, path := range []string{"xds.tls.cert", "xds.tls.name"} {
		if l.given(path) && lookup(path).slot.write(l.config) != nil && x.TLS.CA == "" && l.sound(path, "xds.tls.ca") {
			l.clash(path, diag.Error, quote(path)+" is given, and the connection is in plain text", "name the authorities of the control plane in `xds.tls.ca`, or write `ca: system`")
		}
	}
	if strings.HasPrefix(x.Address, unixPrefix) && x.TLS.CA != "" && x.TLS.Name == "" && l.sound("xds.tls.ca", "xds.tls.name") {
		l.clash("xds.tls.ca", diag.Error, "a socket has no name that a certificate could have: "+quote(x.Address), "say in `xds.tls.name` which it has")
	}
	if l.sound("listen.rls") && !l.config.Listen.RLS.Open() {
		l.clash("xds.address", diag.Warning, "`xds.address` does nothing: its rules are for `listen.rls`, which is off", "open `listen.rls`")
	}
	keys := make([]string, 0, len(x.Metadata))
	for i, pair := range x.Metadata {
		key, _, _ := strings.Cut(pair, "=")
		if slices.Contains(keys, key) && l.sound("xds.metadata") {
			l.clashItem("xds.metadata", i, diag.Error, "`xds.metadata` has "+quote(key)+" twice", "keep one of them")
		}
		keys = append(keys, key)
	}
}
