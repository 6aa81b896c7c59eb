// Package etcd follows a rule set in etcd, and keeps its revisions there. The keys below a prefix
// are the files of the set, so any program that writes to etcd can change them. Published revisions
// are kept beside them, with author and reason.
//
// Start with [Open]. A bundle is a consistent snapshot of all files, at one revision of etcd. If
// etcd is unreachable, has lost its quorum or has no rules, that is an error: followers keep the
// rules in force.
//
// It pulls in etcd's client and gRPC: import it only if you need it.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/rules/source"
)

// Config of an Archive.
type Config struct {
	// URL is etcd://HOST:2379/PREFIX, with several hosts of one cluster separated by commas,
	// or etcds:// for TLS. A user and a password may stand before the hosts.
	URL string
	// Username is used unless the URL has one. PasswordFile has the password; it is read again
	// after etcd has rejected the previous one.
	Username, PasswordFile string
	// TLS is used for etcds URLs; nil means the system's certificate authorities.
	TLS *tls.Config
}

// Archive is the rule set below a prefix.
type Archive struct {
	name, prefix string
	config       clientv3.Config
	passwordFile string
	client       *clientv3.Client // nil until it is needed
	last         *snapshot        // the last that Next has seen; nil means none
	alive        time.Duration
}

var _ source.Archive = (*Archive)(nil)

const (
	aliveEvery = 5 * time.Second // how often Next returns to show that etcd is reachable
	callTime   = 5 * time.Second // how long a call may take
	watchPause = 250 * time.Millisecond
	// maxMessage is a little more than the largest rule set.
	maxMessage  = rulepack.MaxBytes + 16<<20
	maxPassword = 64 << 10 // bytes of the file
)

// Open checks c and returns an Archive. It does not wait for etcd.
func Open(c Config) (*Archive, error) {
	t, err := read(c.URL)
	if err != nil {
		return nil, err
	}
	a := &Archive{name: t.name, prefix: t.prefix, passwordFile: c.PasswordFile, alive: aliveEvery}
	a.config = clientv3.Config{
		Endpoints: t.endpoints, Username: c.Username, Logger: zap.NewNop(),
		DialTimeout: callTime, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		MaxCallSendMsgSize: maxMessage, MaxCallRecvMsgSize: maxMessage, MaxUnaryRetries: 2,
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(failFast)},
	}
	if t.user != "" {
		a.config.Username, a.config.Password, a.passwordFile = t.user, t.password, ""
		if t.password == "" {
			a.passwordFile = c.PasswordFile
		}
	}
	switch {
	case t.tls && c.TLS != nil:
		a.config.TLS = c.TLS
	case t.tls:
		a.config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	case c.TLS != nil:
		return nil, errors.New("etcd: certificates are for TLS: use etcds://")
	}
	return a, nil
}

// Check reports what is wrong with a URL.
func Check(url string) error {
	_, err := read(url)
	return err
}

// target is a parsed URL.
type target struct {
	name, prefix   string
	endpoints      []string
	user, password string
	tls            bool
}

// read reads a URL. Its errors do not quote the whole of it, which may contain a password.
func read(text string) (t target, err error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme != "etcd" && scheme != "etcds" {
		return t, errors.New("etcd: the URL must begin with etcd:// or etcds://")
	}
	t.tls = scheme == "etcds"
	hosts, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(hosts, "@"); i >= 0 {
		user, password, _ := strings.Cut(hosts[:i], ":")
		var err1, err2 error
		t.user, err1 = url.PathUnescape(user)
		t.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil || t.user == "" {
			return t, errors.New("etcd: the user or password in the URL is missing, or has a % that is not %25")
		}
		hosts = hosts[i+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "2379")
		}
		if strings.HasPrefix(host, ":") {
			return t, errors.New("etcd: the URL names no host: write, for example, etcd://localhost:2379/tidegate/rules")
		}
		t.endpoints = append(t.endpoints, map[bool]string{false: "http://", true: "https://"}[t.tls]+host)
	}
	path = strings.Trim(path, "/")
	if path == "" || strings.ContainsAny(path, "?#@") || rulepack.CheckName(path) != nil {
		return t, errors.New("etcd: the URL ends with the prefix of the keys, as in etcd://localhost:2379/tidegate/rules")
	}
	t.prefix = "/" + path
	t.name = scheme + "://" + hosts + t.prefix
	return t, nil
}

// Name implements [source.Origin].
func (a *Archive) Name() string { return a.name }

// Close implements [source.Origin].
func (a *Archive) Close() error {
	if a.client == nil {
		return nil
	}
	err := a.client.Close()
	a.client = nil
	return err
}

// connect returns the client, and creates it first if needed.
func (a *Archive) connect() (*clientv3.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	c := a.config
	if a.passwordFile != "" {
		text, err := bounded.ReadFile(a.passwordFile, maxPassword)
		if err != nil {
			return nil, fmt.Errorf("etcd: the password: %w", err)
		}
		c.Password = strings.TrimSpace(string(text))
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, a.failure("log in", err)
	}
	a.client = client
	return client, nil
}

// failFast makes a call fail at once, with the reason, if there is no connection. By default it
// would wait until its deadline and report only that.
func failFast(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return call(ctx, method, request, reply, c, append(options, grpc.WaitForReady(false))...)
}

// failure wraps err with what was tried. It also makes the next call log in again, since the
// password may have changed.
func (a *Archive) failure(what string, err error) error {
	if a.config.Username != "" && !errors.Is(err, context.Canceled) {
		_ = a.Close()
	}
	return fmt.Errorf("%s: %s: %w", a.name, what, withAdvice(err))
}

// Next implements [source.Origin].
func (a *Archive) Next(ctx context.Context, have string) (*source.Bundle, error) {
	for end := time.Now().Add(a.alive); ; {
		s, err := a.look(ctx, have)
		if err != nil {
			return nil, err
		}
		if s.revision() != have {
			return s.bundle(), nil
		}
		rest := time.Until(end)
		if rest <= 0 {
			return nil, nil
		}
		a.wait(ctx, s.at+1, rest)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// look returns the current snapshot. If nothing has changed, files are not sent again.
func (a *Archive) look(ctx context.Context, have string) (*snapshot, error) {
	if s := a.last; s != nil && s.revision() == have {
		at, same, err := a.unchanged(ctx, s)
		if err != nil {
			return nil, err
		}
		if same {
			s.at = at
			return s, nil
		}
	}
	a.last = nil
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if len(s.files) == 0 {
		return nil, fmt.Errorf("%s has no rules: publish some with tidegate rules push", a.name)
	}
	a.last = s
	return s, nil
}

// wait returns when something below the prefix has changed at the revision from or later, or after
// most.
func (a *Archive) wait(ctx context.Context, from int64, most time.Duration) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), most)
	defer cancel()
	if a.client == nil {
		return
	}
	from = min(from, math.MaxInt64-1)
	// Whatever the answer is, even an error, the next look shows what has changed.
	news := <-a.client.Watch(ctx, a.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(from))
	if len(news.Events) == 0 { // watching failed: look again, but not at once
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}
