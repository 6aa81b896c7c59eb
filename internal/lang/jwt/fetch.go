package jwt

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

const (
	fetchTimeout = 5 * time.Second // from the name of the host to the last byte
	maxRedirects = 3
)

// fetcher gets a key set from a URL. One goroutine at a time uses it.
type fetcher struct {
	url    *url.URL
	client *http.Client
	etag   string // of the last answer that was used
}

// fetched is an answer.
type fetched struct {
	text      []byte
	etag      string
	unchanged bool          // since the answer with the etag
	maxAge    time.Duration // 0 means it does not say
}

// busyError is what a server says that wants to be left alone for a while.
type busyError struct {
	error
	after time.Duration
}

// IsURL reports whether the name of a key set is a URL rather than a file.
func IsURL(name string) bool { return strings.Contains(name, "://") }

// CheckURL returns why keys cannot be fetched from there: who could change them on the way
// could sign tokens.
func CheckURL(name string) error {
	_, err := parseURL(name)
	return err
}

func parseURL(name string) (*url.URL, error) {
	u, err := url.Parse(name)
	switch {
	case err != nil:
		return nil, errors.New("the URL of the JSON Web Key Set cannot be read")
	case u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("the URL of the JSON Web Key Set takes a host, and neither user nor fragment: %s", u.Redacted())
	case !secure(u):
		return nil, fmt.Errorf("keys are fetched by https alone, or from this machine: %s", u.Redacted())
	}
	return u, nil
}

// secure reports whether nobody on the way can change what u answers.
func secure(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func newFetcher(name string) (f fetcher, err error) {
	if f.url, err = parseURL(name); err != nil {
		return f, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, // minutes pass between two fetches
	}
	first := f.url
	f.client = &http.Client{
		Transport: transport, Timeout: fetchTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("redirected more than %d times", maxRedirects)
			case r.URL.Scheme != "https" && !(first.Scheme == "http" && secure(r.URL)):
				return fmt.Errorf("redirected to %s, which is not https", r.URL.Redacted())
			}
			return nil
		},
	}
	return f, nil
}

func (f *fetcher) get() (got fetched, err error) {
	request, err := http.NewRequest(http.MethodGet, f.url.String(), nil)
	if err != nil {
		return got, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	request.Header.Set("User-Agent", "tidegate")
	if f.etag != "" {
		request.Header.Set("If-None-Match", f.etag)
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return got, fmt.Errorf("fetch the JSON Web Key Set: %w", err)
	}
	defer answer.Body.Close()
	got.etag, got.maxAge = answer.Header.Get("ETag"), maxAgeOf(answer.Header.Get("Cache-Control"))
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		if f.etag == "" {
			return got, fmt.Errorf("fetch the JSON Web Key Set: %s answered 304 to an unconditional request", f.url.Redacted())
		}
		got.etag, got.unchanged = f.etag, true
		return got, nil
	default:
		err := fmt.Errorf("fetch the JSON Web Key Set: %s answered %s", f.url.Redacted(), answer.Status)
		if seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && seconds > 0 {
			return got, &busyError{err, time.Duration(min(seconds, 86400)) * time.Second}
		}
		return got, err
	}
	if got.text, err = bounded.All(answer.Body, maxFile); err != nil {
		return got, fmt.Errorf("fetch the JSON Web Key Set: %s: %w", f.url.Redacted(), err)
	}
	return got, nil
}

// maxAgeOf returns how long an answer is fresh by its own account; 0 if it does not say.
func maxAgeOf(header string) time.Duration {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, "max-age") {
			if n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}
