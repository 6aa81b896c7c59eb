package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

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

// CheckURL reports what is wrong with a URL. It neither connects nor reads the files that
// the URL names.
func CheckURL(url string) error {
	if url == "" {
		return errNoURL
	}
	c := Config{URL: url, skipFiles: true}
	return c.complete()
}

// readURL fills in what the URL says. It does not use net/url, which does not know lists of
// hosts. Its errors do not quote the whole URL, which may contain a password.
func (c *Config) readURL() error {
	word, rest, ok := strings.Cut(c.URL, "://")
	how, known := schemes[word]
	if !ok || !known {
		return errors.New("the URL must begin with redis://, rediss://, redis-cluster://, redis-sentinel:// or unix://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(rest, "@"); i >= len(hosts) && !how.socket {
		return errors.New("the URL has an @ behind its first slash: write a slash in a password as %2F")
	}
	if i := strings.LastIndex(hosts, "@"); i >= 0 {
		if err := c.readUser(hosts[:i]); err != nil {
			return err
		}
		hosts, c.PasswordFile = hosts[i+1:], ""
	}
	if err := c.readPlace(how, hosts, path); err != nil {
		return err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("what stands behind the ? of the URL cannot be read")
	}
	if how.tls && c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return c.readQuery(values)
}

func (c *Config) readUser(text string) error {
	name, password, _ := strings.Cut(text, ":")
	var err, err2 error
	c.Username, err = url.PathUnescape(name)
	c.Password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("the user or password in the URL has a % that is not %25")
	}
	return nil
}

// readPlace reads hosts, and the path behind them.
func (c *Config) readPlace(how scheme, hosts, path string) error {
	if how.socket {
		if hosts != "" {
			return fmt.Errorf("unix://%s/…: a socket has no host: write three slashes, as in unix:///run/redis.sock", hosts)
		}
		c.Addrs = []string{"/" + path}
		return nil
	}
	port := "6379"
	if how.sentinel {
		port = "26379"
	}
	c.Addrs = nil
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := withPort(host, port)
		if err != nil {
			return err
		}
		c.Addrs = append(c.Addrs, addr)
	}
	c.Cluster = how.cluster || len(c.Addrs) > 1 && !how.sentinel
	if how.sentinel {
		if path == "" || strings.Contains(path, "/") {
			return errors.New("a redis-sentinel URL ends with the name of the master, as in redis-sentinel://a:26379,b:26379/mymaster")
		}
		c.Master = path
		return nil
	}
	return c.readDB(path)
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

func (c *Config) readDB(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("database %q: want a number", text)
	}
	c.DB = int(n)
	return nil
}

func (c *Config) readQuery(values url.Values) error {
	var ca, cert, key string
	for name, all := range values {
		value := all[len(all)-1]
		switch name {
		case "db":
			if err := c.readDB(value); err != nil {
				return err
			}
		case "prefix":
			c.Prefix = value
		case "sentinel_user":
			c.SentinelUsername = value
		case "sentinel_password":
			c.SentinelPassword = value
		case "ca":
			ca = value
		case "cert":
			cert = value
		case "key":
			key = value
		default:
			return fmt.Errorf("the URL has ?%s=…: want db, prefix, sentinel_user, sentinel_password, ca, cert or key", name)
		}
	}
	return c.readTLS(ca, cert, key)
}

// readTLS reads the files that TLS needs beyond what the machine trusts.
func (c *Config) readTLS(ca, cert, key string) error {
	if ca == "" && cert == "" && key == "" {
		return nil
	}
	if c.TLS == nil {
		return errors.New("ca, cert and key are for TLS: use rediss://")
	}
	if c.skipFiles {
		return nil
	}
	c.TLS = c.TLS.Clone()
	if ca != "" {
		pem, err := bounded.ReadFile(ca, bounded.PEM)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca: %s has no certificate in PEM", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := bounded.KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
