// Package etcd follows a rule set in etcd, and keeps its revisions there. All keys below a
// prefix are the files of the set, so that whatever writes to etcd can change them; the
// revisions that were published with their author and reason are kept beside them.
//
// Start with [Open]. A bundle is a consistent snapshot of all files, at one revision of
// etcd. An etcd that is away, has lost its quorum or has no rules is an error: whoever follows
// keeps what is in force.
//
// It brings etcd's client, and so gRPC, into a program: only who needs it should import it.
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
	// Username is used unless the URL has one. PasswordFile has the password; it is read
	// again after etcd did not accept the last one.
	Username, PasswordFile string
	// TLS is used by etcds URLs; nil means the authorities that this machine trusts.
	TLS *tls.Config
}

// Archive is the rule set below a prefix.
type Archive struct {
	name, prefix string
	config       clientv3.Config
	passwordFile string
	client       *clientv3.Client // nil until it is needed
	last         *snapshot        // that Next has seen; nil means none
	alive        time.Duration
}

var _ source.Archive = (*Archive)(nil)

const (
	aliveEvery = 5 * time.Second // how often Next says that etcd is there
	callTime   = 5 * time.Second // in which a call has to be answered
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

// target is what a URL says.
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

// connect returns a client, which it makes if needed.
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

// failFast lets a call fail because there is no connection, and say why. By default it would
// wait until its time is over, and say that.
func failFast(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return call(ctx, method, request, reply, c, append(options, grpc.WaitForReady(false))...)
}

// failure says what was tried, and why it failed. The next call logs in again, perhaps with
// another password.
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

// look returns what is there. While nothing has changed, files are not sent again.
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

// wait returns when something below the prefix was changed at a revision or later, or when it
// has waited long enough.
func (a *Archive) wait(ctx context.Context, from int64, most time.Duration) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), most)
	defer cancel()
	if a.client == nil {
		return
	}
	from = min(from, math.MaxInt64-1)
	// Whatever it says, errors included, the next look finds out what is so.
	news := <-a.client.Watch(ctx, a.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(from))
	if len(news.Events) == 0 { // it cannot watch: look again, but not at once
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}
