// Package httpsource reads rules from a web server, and follows their changes: a rule file with its
// includes and lists, or a bundle of all files as served by package feed.
//
//	s, err := httpsource.New(httpsource.Options{URL: "https://config.example/rules/rules.yaml"})
//
// gives an Origin for package source. It asks with If-None-Match or If-Modified-Since, and with
// `Prefer: wait=60`: a server that supports that answers when the file has changed. A server that
// answers at once is asked every second, or less often if Cache-Control or Retry-After say so.
//
// The revision is the ETag of a file. If that cannot tell two versions apart (the set has several
// files, or the server sends only dates, or neither), the revision contains a hash of the content.
package httpsource

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/feed"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// Options of [New]. A URL is required.
type Options struct {
	// URL of the rule file or the bundle. Its query is sent with every request, and never shown.
	URL string
	// TokenFile has the bearer token; "" sends none. It is read for every request, and the token is
	// sent only to the host of the URL.
	TokenFile string
	// CA has the authorities of the server's certificate (PEM); "" means those of the system.
	// Cert and Key have the certificate to show (PEM); "" shows none. Changes are noticed.
	CA, Cert, Key string
	// Wait is how long the server is asked to wait for a change; 0 means a minute.
	Wait time.Duration
	// Report returns what the server is told about this instance; nil means nothing.
	Report func() feed.Report
}

const (
	// DefaultWait is the default of [Options.Wait].
	DefaultWait = time.Minute
	// maxRest is how long Next waits for a busy server before it returns an error.
	maxRest = 10 * time.Second
)

// pace is how often the server is asked.
type pace struct {
	poll   time.Duration // between two requests for the same file that are answered at once
	settle time.Duration // between two reads of several files that are changing
	spread time.Duration // between two bundles
	doubt  time.Duration // after which a file is fetched whole, whatever its ETag is
	perMiB time.Duration // least poll per MiB for files without ETag and date
}

var usual = pace{poll: time.Second, settle: 50 * time.Millisecond, spread: 250 * time.Millisecond, doubt: time.Minute, perMiB: time.Second}

// bounds are limits on what is read from a server, in bytes.
type bounds struct {
	file  int // of each file
	all   int // of all files together
	bytes int // of an answer that may be a bundle
}

// Source is an Origin.
type Source struct {
	o      Options
	pace   pace
	bounds bounds
	url    *url.URL // of the main file
	main   string   // its name
	name   string
	client *web.Client
	now    *snapshot // the last state of the server; nil means unknown
	last   time.Time // when Next last returned a bundle
	rest   web.Rest

	mu       sync.Mutex
	reported feed.Report // under mu; what the server was last told
	answered time.Time   // under mu; when the server last said that a file is unchanged
}

var _ source.Answering = (*Source)(nil)

// New returns a source. The error is about the options; the server is not asked yet.
func New(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL of the rules cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("the URL of the rules is not one of a web server, such as https://config.example/rules.yaml: %s", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("the URL of the rules has a user in it: put a token into rules_source.token_file, where no log shows it: https://%s%s", u.Host, u.Path)
	case u.Fragment != "":
		return nil, fmt.Errorf("the URL of the rules has a part after #, which no server sees: %s%s", u.Host, u.Path)
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	s := &Source{o: o, pace: usual, bounds: bounds{source.MaxFile, source.MaxTotal, feed.MaxBody}, url: u, main: path.Base(u.Path), name: nameOf(u)}
	if s.main == "/" || s.main == "." || strings.HasSuffix(u.Path, "/") {
		s.main = "rules.yaml"
	}
	s.client, err = web.New(u, web.Options{TokenFile: o.TokenFile, CA: o.CA, Cert: o.Cert, Key: o.Key})
	return s, err
}

// nameOf returns u without its query, which may contain a secret. Different queries have different
// names.
func nameOf(u *url.URL) string {
	name := *u
	name.RawQuery, name.ForceQuery = "", false
	if u.RawQuery == "" {
		return name.String()
	}
	h := fnv.New32a()
	h.Write([]byte(u.RawQuery))
	return fmt.Sprintf("%s?(%08x)", name.String(), h.Sum32())
}

// Name implements [source.Origin].
func (s *Source) Name() string { return s.name }

// Answered implements [source.Answering].
func (s *Source) Answered() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// Close implements [source.Origin].
func (s *Source) Close() error {
	s.client.Close()
	return nil
}

// Next implements [source.Origin].
func (s *Source) Next(ctx context.Context, have string) (*source.Bundle, error) {
	if err := s.rest.Wait(ctx, min(s.o.Wait, maxRest)); err != nil {
		return nil, err
	}
	if err := sleep.For(ctx, s.pace.spread-time.Since(s.last)); err != nil {
		return nil, err
	}
	b, err := s.next(ctx, have)
	s.rest.Note(err)
	if b != nil {
		s.last = time.Now()
	}
	return b, err
}

func (s *Source) next(ctx context.Context, have string) (*source.Bundle, error) {
	var fresh *file
	if s.now != nil && have == s.now.revision {
		var err error
		if fresh, err = s.await(ctx, s.now); err != nil || fresh == nil {
			return nil, err
		}
	}
	is, err := s.settled(ctx, fresh)
	if err != nil {
		return nil, err
	}
	s.now = is
	if is.revision == have {
		return nil, nil
	}
	return is.bundle, nil
}

// settled reads a set of several files until two reads in a row agree: until then they are still
// being replaced one by one. fresh was just fetched; nil means that nothing was.
func (s *Source) settled(ctx context.Context, fresh *file) (*snapshot, error) {
	const looks = 8
	is, err := s.collect(ctx, s.now, fresh)
	for range looks {
		if err != nil || len(is.files) == 1 {
			return is, err
		}
		if err := sleep.For(ctx, s.pace.settle); err != nil {
			return nil, err
		}
		was := is
		if is, err = s.collect(ctx, was, nil); err == nil && is.revision == was.revision {
			break
		}
	}
	return is, err
}
