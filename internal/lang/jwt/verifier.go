// Package jwt reads the claims of bearer tokens (RFC 7519) after it has verified
// them: the signature, with keys from a file or a URL, and the validity times, issuer
// and audience.
//
// Start with [New] and [Verifier.Claims]. [Unverified] reads claims without proof;
// no other function here uses it.
//
// The signature is HS256, RS256, ES256 or EdDSA. A key is valid for one of them,
// by its own type: the algorithm that a token names only selects among the keys
// of that algorithm, so a public key never serves as a secret. The package
// issues no tokens and decrypts nothing.
package jwt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	gojwt "github.com/golang-jwt/jwt/v5"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

const (
	// MaxToken is the length of the longest token that is looked at.
	MaxToken = 16 << 10
	// leeway is how far the clocks of issuer and verifier may be apart.
	leeway = 30 * time.Second
)

// Config says which tokens are believed. One of KeyFile, JWKSFile and URL is needed.
type Config struct {
	// KeyFile is a public key or certificate in PEM, or else the secret of
	// HS256 as it is: at least 32 bytes, where the line end after a secret of
	// printable characters is not part of it. Of a certificate only the key
	// counts, not its dates.
	KeyFile string
	// JWKSFile is a JSON Web Key Set (RFC 7517).
	JWKSFile string
	// URL is where the issuer publishes its JSON Web Key Set: https, or http on this
	// machine. The set is fetched again every Refresh, by default DefaultRefresh, or
	// earlier if its Cache-Control says so, and when a token has a key id that it has not.
	URL     string
	Refresh time.Duration
	// CopyFile keeps the last good copy of what URL had, for a start while it does not
	// answer; "" keeps none.
	CopyFile string
	// Issuer and Audience are what the claims iss and aud must be; of several
	// audiences one must be it. Empty: they are not looked at.
	Issuer, Audience string
	// Now replaces the clock; nil means time.Now.
	Now func() time.Time
	// ReadFile replaces the file system; nil reads from disk.
	ReadFile func(name string) ([]byte, error)
}

// Verifier verifies tokens, and remembers for a while what it found. It is used
// by many goroutines at once.
type Verifier struct {
	config Config
	parser *gojwt.Parser
	inUse  atomic.Pointer[epoch]
	remote *remote // nil if the keys are in a file
}

// epoch lasts from one load of the keys to the next. The cache goes with the
// keys, so that a result of old keys never outlives them.
type epoch struct {
	keys  keySet
	cache cache
}

// New reads the keys. Those of a URL may come later: until then no token is valid, and
// [Verifier.Status] tells why.
func New(c Config) (*Verifier, error) {
	named := 0
	for _, name := range []string{c.KeyFile, c.JWKSFile, c.URL} {
		if name != "" {
			named++
		}
	}
	if named != 1 {
		return nil, errors.New("verifying JWTs takes either a key file or a JWKS: name one of the two")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ReadFile == nil {
		c.ReadFile = bounded.Files(maxFile)
	}
	options := []gojwt.ParserOption{
		gojwt.WithValidMethods(algorithms),
		gojwt.WithStrictDecoding(),
		gojwt.WithTimeFunc(c.Now),
		gojwt.WithLeeway(leeway),
		gojwt.WithIssuedAt(),
	}
	if c.Issuer != "" {
		options = append(options, gojwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		options = append(options, gojwt.WithAudience(c.Audience))
	}
	v := &Verifier{config: c, parser: gojwt.NewParser(options...)}
	if c.URL != "" {
		return v, v.connect()
	}
	if err := v.Reload(); err != nil {
		return nil, err
	}
	return v, nil
}

// Reload reads the keys again and forgets what was found with the old ones. On
// an error the old keys stay in use.
func (v *Verifier) Reload() error {
	name, kind, parse := v.config.KeyFile, "key file", parseKeyFile
	if name == "" {
		name, kind, parse = v.config.JWKSFile, "JWKS file", parseJWKS
	}
	text, err := v.config.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the JWT %s: %w", kind, err)
	}
	if len(text) > maxFile {
		return fmt.Errorf("the JWT %s %s is larger than %d bytes: is it the right file?", kind, name, maxFile)
	}
	keys, err := parse(text)
	if err != nil {
		return fmt.Errorf("the JWT %s %s: %w", kind, name, err)
	}
	v.inUse.Store(&epoch{keys: keys})
	return nil
}

// Claims is shorthand for Verify without the reason.
func (v *Verifier) Claims(token string) (Claims, bool) {
	claims, reason := v.Verify(token)
	return claims, reason == Valid
}

// Verify returns what a token says, if it is one to believe. The token comes
// without the word Bearer. Dates have a leeway of 30 seconds; a token without
// an expiry is valid until the keys change.
//
// Otherwise there is a reason. Where keys come from a URL, an unknown key has them fetched
// again, which takes at most [FetchWait], and mostly nothing; see remote.
//
// A valid token is remembered for a minute, or until it expires, an invalid one for ten
// seconds. A remembered verdict costs a hash and no memory.
func (v *Verifier) Verify(token string) (Claims, Reason) {
	if len(token) > MaxToken {
		return Claims{}, TooLong
	}
	claims, reason := v.look(token)
	if v.remote != nil && v.remote.asked(reason) {
		claims, reason = v.look(token)
	}
	return claims, reason
}

// look finds a token in the cache, or verifies it.
func (v *Verifier) look(token string) (Claims, Reason) {
	now := v.config.Now()
	epoch := v.inUse.Load()
	// The conversion would copy the token; Sum256 neither keeps nor changes it.
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(token), len(token)))
	claims, reason, known := epoch.cache.get(&sum, now)
	if !known {
		var until time.Time
		p, err := v.verify(epoch.keys, token)
		if reason = reasonOf(err); reason == Valid {
			claims, until = Claims{p.object}, p.until(now)
		}
		epoch.cache.put(&sum, claims, reason, now, until)
	}
	return claims, reason
}

func (v *Verifier) verify(keys keySet, token string) (*payload, error) {
	if !compact(token) {
		return nil, errNotCompact
	}
	var p payload
	if _, err := v.parser.ParseWithClaims(token, &p, keys.find); err != nil {
		return nil, err
	}
	if p.object == "" { // a JSON null is not handed to payload
		return nil, errNoObject
	}
	return &p, nil
}

// compact reports whether token has the form of a signed token. The decoder
// would skip line ends, which makes many spellings of one token.
func compact(token string) bool {
	return strings.Count(token, ".") == 2 && strings.IndexFunc(token, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}) < 0
}
