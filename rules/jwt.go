package rules

import (
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/lang/jwt"
)

// JWT says how bearer tokens are verified. One of Key and JWKS is required. Do not copy it: Sets
// that are loaded with the same JWT share the keys of a URL, and the counts.
type JWT struct {
	// Key is a file with one public key (PEM), or with a shared secret.
	Key string
	// JWKS is a file with a JSON Web Key Set, or the URL where the issuer publishes one:
	// https, or http on this machine.
	//
	// The keys of a URL are fetched by the first Load, which waits for them for six
	// seconds at most, and again every Refresh, or when a token has an unknown key id. A
	// request waits for that for 200 ms at most. While the URL does not answer, or answers
	// what is not a key set, the last keys stay in use; if there were none, no token is valid.
	JWKS string
	// Refresh is the maximum age of the keys of a URL; 0 means 10 minutes. Cache-Control of the
	// answer can shorten it, but not below 30 s.
	Refresh time.Duration
	// Copy is a file that keeps the last good keys of a URL, for a start while the URL does not
	// answer; "" keeps none.
	Copy string
	// Issuer and Audience are what a token must have; "" accepts any.
	Issuer, Audience string

	mu       sync.Mutex
	remote   *jwt.Verifier                 // of a URL; under mu
	rejected [jwt.Invalid + 1]atomic.Int64 // tokens, by reason
}

// newVerifier reads the keys from a file, or returns the shared verifier of a URL.
func (j *JWT) newVerifier(c *Config) (*jwt.Verifier, error) {
	made := jwt.Config{
		KeyFile: j.Key, JWKSFile: j.JWKS, Issuer: j.Issuer, Audience: j.Audience,
		Now: c.now, ReadFile: c.ReadFile,
	}
	if !jwt.IsURL(j.JWKS) {
		return jwt.New(made)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.remote == nil {
		made.JWKSFile, made.URL, made.Refresh, made.CopyFile = "", j.JWKS, j.Refresh, j.Copy
		v, err := jwt.New(made)
		if err != nil {
			return nil, err
		}
		j.remote = v
	}
	return j.remote, nil
}

func (j *JWT) ofURL() *jwt.Verifier {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.remote
}

// RefreshKeys starts a fetch of the keys of a URL if it is due, and does not wait.
// [tidegate.dev/tidegate/rules/source] calls it every second; otherwise tokens cause it.
func (j *JWT) RefreshKeys() {
	if v := j.ofURL(); v != nil {
		v.Refresh()
	}
}

// JWKSStatus is the state of the keys of a URL.
type JWKSStatus struct {
	URL  string `json:"url"`
	Keys int    `json:"keys"`
	// FetchedAt is when the URL last returned them; zero means that they are of the copy, or that
	// there are none.
	FetchedAt time.Time `json:"fetched_at,omitzero"`
	// Fetched and Failed count the fetches that succeeded and failed.
	Fetched int64 `json:"fetched"`
	Failed  int64 `json:"failed"`
	// LastError is why the last fetch failed, and Since the time of the first failure in a row; ""
	// means that it succeeded.
	LastError string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// CopyError is why the copy could not be written.
	CopyError string `json:"copy_error,omitempty"`
}

// Status returns the state of the keys of a URL; ok is false if the keys are in a file, or not
// loaded yet.
func (j *JWT) Status() (s JWKSStatus, ok bool) {
	v := j.ofURL()
	if v == nil {
		return s, false
	}
	is, ok := v.Status()
	s = JWKSStatus{URL: is.URL, Keys: is.Keys, FetchedAt: is.FetchedAt, Fetched: is.OK, Failed: is.Failed, Since: is.Since}
	if is.Err != nil {
		s.LastError = is.Err.Error()
	}
	if is.CopyErr != nil {
		s.CopyError = is.CopyErr.Error()
	}
	return s, ok
}
