// Package redisurl reads the URLs by which operators name a Redis, a cluster or Sentinels. It
// does not connect, and reads none of the files that a URL names. Start with [Check], or with
// [Target.Read] to use what a URL says.
package redisurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ErrNone is returned by Check when there is no address at all.
var ErrNone = errors.New("no address: give a URL such as redis://localhost:6379")

// ErrNoTLS is returned by Check when a URL names files for TLS and does not use it.
var ErrNoTLS = errors.New("ca, cert and key are for TLS: use rediss://")

// Target is what a URL says about a Redis, and how to log in there.
type Target struct {
	Addrs                              []string // hosts with ports, or the path of a socket
	Cluster                            bool
	Master                             string // the name that Sentinels know Redis by
	HasUser                            bool   // the URL has a user or a password
	Username, Password                 string
	SentinelUsername, SentinelPassword string
	DB                                 int
	Prefix                             string
	TLS                                bool
	CA, Cert, Key                      string // PEM files
}

// scheme is what the part of a URL before :// means.
type scheme struct {
	tls, cluster, sentinel, socket bool
}

var schemes = map[string]scheme{
	"redis":           {},
	"rediss":          {tls: true},
	"valkey":          {},
	"valkeys":         {tls: true},
	"redis-cluster":   {cluster: true},
	"rediss-cluster":  {cluster: true, tls: true},
	"redis-sentinel":  {sentinel: true},
	"rediss-sentinel": {sentinel: true, tls: true},
	"unix":            {socket: true},
}

// Check reports what is wrong with a URL.
func Check(text string) error {
	var t Target
	if text != "" {
		if err := t.Read(text); err != nil {
			return err
		}
	}
	if t.NamesFiles() && !t.TLS {
		return ErrNoTLS
	}
	return t.Check()
}

// NamesFiles reports whether files for TLS are named.
func (t *Target) NamesFiles() bool { return t.CA != "" || t.Cert != "" || t.Key != "" }

// Check reports what cannot be, whether it comes from a URL or not.
func (t *Target) Check() error {
	switch {
	case len(t.Addrs) == 0:
		return ErrNone
	case t.Cluster && t.Master != "":
		return errors.New("a cluster has no Sentinels: give a master's name, or a cluster, not both")
	case t.Cluster && t.DB != 0:
		return fmt.Errorf("database %d: a cluster has only database 0", t.DB)
	case len(t.Addrs) > 1 && !t.Cluster && t.Master == "":
		return errors.New("several addresses: say whether they are a cluster or Sentinels, and of which master")
	case !validPrefix(t.Prefix):
		return fmt.Errorf("prefix %q: use up to %d letters, digits and ._@-", t.Prefix, maxPrefix)
	}
	return nil
}

const maxPrefix = 64

// validPrefix reports whether a prefix is written into keys as it is.
func validPrefix(prefix string) bool {
	for i := range len(prefix) {
		c := prefix[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._@-", c) >= 0) {
			return false
		}
	}
	return len(prefix) <= maxPrefix
}

// Read fills in what a URL says, and leaves everything else as it is. It does not use
// net/url for the whole, which does not know lists of hosts. Its errors do not quote the
// whole URL, which may contain a password.
func (t *Target) Read(text string) error {
	name, rest, ok := strings.Cut(text, "://")
	how, known := schemes[name]
	if !ok || !known {
		return errors.New("the URL must begin with redis://, rediss://, redis-cluster://, redis-sentinel:// or unix://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(rest, "@"); i >= len(hosts) && !how.socket {
		return errors.New("the URL has an @ after its first slash: write a slash in a password as %2F")
	}
	if i := strings.LastIndex(hosts, "@"); i >= 0 {
		if err := t.readUser(hosts[:i]); err != nil {
			return err
		}
		hosts = hosts[i+1:]
	}
	if err := t.readAddrs(how, hosts, path); err != nil {
		return err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the query of the URL cannot be read")
	}
	t.TLS = t.TLS || how.tls
	return t.readQuery(values)
}

func (t *Target) readUser(text string) error {
	name, password, _ := strings.Cut(text, ":")
	var err, err2 error
	t.Username, err = url.PathUnescape(name)
	t.Password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("the user or password in the URL has a % that is not %25")
	}
	t.HasUser = true
	return nil
}

// readAddrs reads hosts, and the path behind them.
func (t *Target) readAddrs(how scheme, hosts, path string) error {
	if how.socket {
		if hosts != "" {
			return errors.New("a socket has no host: write three slashes, as in unix:///run/redis.sock") // it may be a password
		}
		t.Addrs = []string{"/" + path}
		return nil
	}
	port := "6379"
	if how.sentinel {
		port = "26379"
	}
	t.Addrs = nil
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := withPort(host, port)
		if err != nil {
			return err
		}
		t.Addrs = append(t.Addrs, addr)
	}
	t.Cluster = how.cluster || len(t.Addrs) > 1 && !how.sentinel
	if how.sentinel {
		if path == "" || strings.Contains(path, "/") {
			return errors.New("a redis-sentinel URL ends with the name of the master, as in redis-sentinel://a:26379,b:26379/mymaster")
		}
		t.Master = path
		return nil
	}
	return t.readDB(path)
}

func withPort(host, port string) (string, error) {
	if host == "" {
		host = "localhost"
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host, nil
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.Contains(bare, ":") && bare == host {
		return "", fmt.Errorf("host %q: write an IPv6 address in brackets, as in [::1]:%s", host, port)
	}
	return net.JoinHostPort(bare, port), nil
}

func (t *Target) readDB(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("database %q: want a number", text)
	}
	t.DB = int(n)
	return nil
}

func (t *Target) readQuery(values url.Values) error {
	for name, all := range values {
		value := all[len(all)-1]
		switch name {
		case "db":
			if err := t.readDB(value); err != nil {
				return err
			}
		case "prefix":
			t.Prefix = value
		case "sentinel_user":
			t.SentinelUsername = value
		case "sentinel_password":
			t.SentinelPassword = value
		case "ca":
			t.CA = value
		case "cert":
			t.Cert = value
		case "key":
			t.Key = value
		default:
			return fmt.Errorf("the URL has ?%s=…: want db, prefix, sentinel_user, sentinel_password, ca, cert or key", name)
		}
	}
	return nil
}
