package httpsource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/source/feed"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// file is one file of the server as of one answer. It is never changed: each answer makes another.
type file struct {
	name    string // in the bundle
	missing bool   // the server does not have it
	text    []byte
	sum     [sha256.Size]byte
	bundle  bool // it has all files

	etag, modified string        // by which the server is asked again; "" if it does not say
	maxAge         time.Duration // how long it is fresh, by its headers; 0 if they do not say
	whole          time.Time     // when it was last fetched whole, or confirmed by a long poll
	young          bool          // when fetched, it could be written again in the same second
	refers         []rulefile.Reference
}

// fetch returns the file as it is now; a copy of was if the server says that it has not changed. If
// wait is not 0, the server is asked to wait for a change. pause is how long not to ask it again.
func (s *Source) fetch(ctx context.Context, name string, was *file, wait time.Duration) (is *file, pause time.Duration, err error) {
	u := s.urlOf(name)
	q := web.Request{URL: u, Header: make(http.Header), Wait: wait, Max: s.most(name)}
	if s.o.Report != nil {
		r := s.o.Report()
		q.Header = r.Header()
		s.mu.Lock()
		s.reported = r
		s.mu.Unlock()
	}
	q.Header.Set("Accept", feed.MediaType+", application/yaml, text/yaml, text/plain, */*;q=0.5")
	// A date, and an ETag made of time and size, may be that of two versions: the file is
	// fetched whole while it is young, and now and then.
	conditional := was != nil && (was.etag != "" || was.modified != "") && !was.young && time.Since(was.whole) < s.pace.doubt
	if conditional {
		if was.etag != "" {
			q.Header.Set("If-None-Match", was.etag)
		} else {
			q.Header.Set("If-Modified-Since", was.modified)
		}
	}
	if wait > 0 && conditional {
		q.Header.Set("Prefer", "wait="+web.Seconds(wait))
	} else {
		q.Wait = 0
	}
	answer, err := s.client.Do(ctx, q)
	if err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", nameOf(u), err)
	}
	if is, err = s.read(name, was, conditional, answer); err != nil {
		return nil, 0, fmt.Errorf("get %s: %w", nameOf(u), err)
	}
	if conditional && answer.Took >= s.pace.poll { // it watches the file, and would know
		is.whole = time.Now()
	}
	return is, s.pause(is, answer.Took), nil
}

func (s *Source) most(name string) int64 {
	if name == s.main {
		return int64(s.bounds.bytes)
	}
	return int64(s.bounds.file)
}

// urlOf returns the URL of a file: beside the main one, with the same query.
func (s *Source) urlOf(name string) *url.URL {
	u := *s.url
	if name == s.main {
		return &u
	}
	escaped := s.url.EscapedPath()
	escaped = "/" + strings.TrimPrefix(escaped[:strings.LastIndexByte(escaped, '/')+1], "/") + (&url.URL{Path: name}).EscapedPath()
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	}
	return &u
}

// read makes a file of an answer. A file other than the main one may be missing; every other answer
// that is neither a file nor "not modified" is an error.
func (s *Source) read(name string, was *file, conditional bool, a *web.Answer) (*file, error) {
	switch {
	case a.Status == http.StatusNotModified && conditional:
		is := *was
		is.maxAge = web.MaxAge(a.Header)
		return &is, nil
	case a.Status == http.StatusNotModified:
		return nil, errors.New("the server answered 304 (not modified) to an unconditional request")
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		if name == s.main {
			return nil, fmt.Errorf("the server answered %s: there is no such file", web.Status(a.Status))
		}
		return &file{name: name, missing: true}, nil
	case a.Status != http.StatusOK:
		return nil, web.Refused(a)
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")) // text, if it does not say
	if kind == "text/html" {
		return nil, errors.New("the server answered with a web page (text/html), not with rules; is it a page to sign in?")
	}
	is := &file{
		name: name, text: a.Body, sum: sha256.Sum256(a.Body), bundle: kind == feed.MediaType && name == s.main,
		etag: a.Header.Get("ETag"), modified: a.Header.Get("Last-Modified"), maxAge: web.MaxAge(a.Header), whole: time.Now(),
	}
	if at, err := http.ParseTime(is.modified); err == nil {
		now, err := http.ParseTime(a.Header.Get("Date"))
		is.young = err != nil || now.Sub(at) < 2*time.Second
	}
	if !is.bundle && len(is.text) > s.bounds.file {
		return nil, fmt.Errorf("the file is larger than %d MiB", s.bounds.file>>20)
	}
	return is, nil
}

// pause returns how long not to ask the server for a file again. A server that took at least
// pace.poll to answer was waiting for a change, and is asked again at once.
func (s *Source) pause(is *file, took time.Duration) time.Duration {
	if took >= s.pace.poll {
		return 0
	}
	pause := max(s.pace.poll, is.maxAge)
	if is.etag == "" && is.modified == "" { // every answer is a whole file
		pause = max(pause, time.Duration(len(is.text)>>20)*s.pace.perMiB)
	}
	return pause*9/10 + rand.N(pause/5+1) // jitter: a fleet does not ask all at once
}
