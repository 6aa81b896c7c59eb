// Package dogma reads rules from Central Dogma, LINE's configuration server, and publishes them
// there.
//
//	s, err := dogma.New(dogma.Options{URL: "dogma://dogma.example:36462/PROJECT/REPO/limits/rules.yaml"})
//
// gives an Archive for package source. A path that ends in a slash is a folder, whose rule files
// are read together; any other is a rule file, whose includes and lists are fetched from beside
// it, at the same revision. All of them are watched by the server's long poll: If-None-Match
// with the revision that is known, and `Prefer: wait=60, notify-entry-not-found=true`.
//
// A revision is a number of the repository. Central Dogma keeps them all; [Source.History] lists
// the last that changed the rules.
package dogma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// Options of [New]. A URL is required.
type Options struct {
	// URL is dogma://HOST[:36462]/PROJECT/REPO/PATH, or dogmas:// for TLS.
	URL string
	// TokenFile has the token of an application; "" sends none. It is read for every request.
	TokenFile string
	// CA has the authorities of the server's certificate (PEM); "" means those of the system.
	// Cert and Key have the certificate to show (PEM); "" shows none. Changes are noticed.
	CA, Cert, Key string
	// Wait is how long the server is asked to wait for a change; 0 means a minute.
	Wait time.Duration
}

const (
	// DefaultWait is the default of [Options.Wait].
	DefaultWait = time.Minute
	defaultPort = "36462"
	// maxRest is how long Next waits for a busy server before it returns an error.
	maxRest = 10 * time.Second
	// first is the revision of an empty repository: all content is a change since.
	first = 1
	// newest is the revision number that means the newest.
	newest = -1
)

// pace is how often the server is asked.
type pace struct {
	poll   time.Duration // after an answer that came at once
	spread time.Duration // between two bundles
}

var usual = pace{poll: time.Second, spread: 250 * time.Millisecond}

// Source is an Archive.
type Source struct {
	o      Options
	pace   pace
	name   string
	api    *url.URL // of the repository
	folder string   // folder that file names are relative to, with a slash at the end
	main   string   // rule file in the folder; "" means all
	client *web.Client
	rest   web.Rest
	now    *snapshot // nil means unknown
	last   time.Time // when Next last returned a bundle
}

var _ source.Archive = (*Source)(nil)

// New returns a source. The error is about the options; the server is not asked yet.
func New(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	const want = "want dogma://HOST:36462/PROJECT/REPO/PATH, or dogmas:// for TLS"
	switch {
	case err != nil:
		return nil, errors.New("the URL of Central Dogma cannot be read: " + want)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL of Central Dogma has a user, a query or a fragment: " + want + "; put the token into rules_source.token_file")
	case u.Scheme != "dogma" && u.Scheme != "dogmas" || u.Hostname() == "":
		return nil, fmt.Errorf("%s is not a URL of Central Dogma: %s", u.Redacted(), want)
	}
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return nil, fmt.Errorf("%s does not name a project and a repository: %s", u.Redacted(), want)
	}
	at := "/"
	if len(parts) == 3 {
		at += parts[2]
	}
	if strings.ContainsAny(at, "*,") || path.Clean(at) != at && path.Clean(at)+"/" != at {
		return nil, fmt.Errorf("%s does not name one file or folder: %s", u.Redacted(), want)
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	s := &Source{o: o, pace: usual, name: u.String()}
	s.folder, s.main = path.Split(at)
	s.api = &url.URL{Scheme: map[string]string{"dogma": "http", "dogmas": "https"}[u.Scheme], Host: u.Host}
	if u.Port() == "" {
		s.api.Host = strings.TrimSuffix(u.Host, ":") + ":" + defaultPort
	}
	s.api = s.api.JoinPath("api", "v1", "projects", url.PathEscape(parts[0]), "repos", url.PathEscape(parts[1]))
	s.client, err = web.New(s.api, web.Options{TokenFile: o.TokenFile, CA: o.CA, Cert: o.Cert, Key: o.Key})
	return s, err
}

// Name implements [source.Origin].
func (s *Source) Name() string { return s.name }

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
	if s.now == nil || have != s.now.bundle.Revision {
		is, err := s.current(ctx)
		if err != nil {
			return nil, err
		}
		s.now = is
		if is.bundle.Revision == have {
			return nil, nil
		}
		return is.bundle, nil
	}
	revision, err := s.await(ctx, s.now)
	if lostRevision(err) { // the repository was created again: start over
		s.now = nil
	}
	if err != nil {
		return nil, err
	}
	if revision == 0 {
		return nil, s.verify(ctx, s.now)
	}
	is, err := s.collect(ctx, revision)
	if err != nil {
		return nil, err
	}
	s.now = is
	s.describe(ctx, is)
	if is.bundle.Revision == have { // only a missing file was looked for again
		return nil, nil
	}
	return is.bundle, nil
}

// verify checks that the server still has the same files for the known revision: a server restored
// from a backup reuses revision numbers, and a watch from that number would see no change.
func (s *Source) verify(ctx context.Context, was *snapshot) error {
	is, err := s.collect(ctx, was.revision)
	if lostRevision(err) {
		s.now = nil
	}
	if err == nil && !maps.EqualFunc(is.bundle.Files, was.bundle.Files, bytes.Equal) {
		err = fmt.Errorf("%s has other files as revision %d than before: commit again what should be in force, or reload", s.name, was.revision)
	}
	return err
}

// describe adds the author and the reason of a revision, if the server answers in time.
func (s *Source) describe(ctx context.Context, is *snapshot) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if all, err := s.commits(ctx, is.bundle.Revision, 1); err == nil && len(all) > 0 {
		e := &is.bundle.Edition
		e.Author, e.Reason, e.At = all[0].Author, all[0].Reason, all[0].At
	}
}

func number(revision string) (int, error) {
	n, err := strconv.Atoi(revision)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q: %w: revisions of Central Dogma are numbers", revision, source.ErrNoRevision)
	}
	return n, nil
}
