package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// issuer has a key of each kind, made once per run. The secret and the Ed25519
// key are always the same, as fuzz workers are processes of their own.
type issuer struct {
	secret  []byte
	rsa     *rsa.PrivateKey
	ecdsa   *ecdsa.PrivateKey
	ed25519 ed25519.PrivateKey
}

var newIssuer = sync.OnceValue(func() *issuer {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	i := &issuer{secret: []byte(strings.Repeat("a secret ", 4))}
	var err error
	i.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	i.ecdsa, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	i.ed25519 = ed25519.NewKeyFromSeed(i.secret[:ed25519.SeedSize])
	return i
})

func (i *issuer) private(algorithm string) any {
	return map[string]any{"HS256": i.secret, "RS256": i.rsa, "ES256": i.ecdsa, "EdDSA": i.ed25519}[algorithm]
}

func (i *issuer) public(algorithm string) any {
	return map[string]any{"RS256": &i.rsa.PublicKey, "ES256": &i.ecdsa.PublicKey, "EdDSA": i.ed25519.Public()}[algorithm]
}

// keyFile is what an operator would have of the issuer for one algorithm.
func (i *issuer) keyFile(t testing.TB, algorithm string) string {
	t.Helper()
	if algorithm == "HS256" {
		return string(i.secret)
	}
	return pemOf(t, i.public(algorithm))
}

// jwks has all four keys, with the ids h, r, e and d.
func (i *issuer) jwks() string {
	b64 := base64.RawURLEncoding.EncodeToString
	point, err := i.ecdsa.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"keys": [
		{"kty":"oct","kid":"h","k":%q},
		{"kty":"RSA","kid":"r","use":"sig","alg":"RS256","n":%q,"e":"AQAB","x5t":"ignored"},
		{"kty":"EC","kid":"e","crv":"P-256","key_ops":["verify"],"x":%q,"y":%q},
		{"kty":"OKP","kid":"d","crv":"Ed25519","x":%q},
		{"kty":"RSA","kid":"other","use":"enc","n":"AQAB","e":"AQAB"},
		{"kty":"EC","kid":"other","crv":"P-384","x":"AQAB","y":"AQAB"},
		{"kty":"RSA","kid":"r","alg":"PS256","n":"AQAB","e":"AQAB"}
	]}`, b64(i.secret), b64(i.rsa.N.Bytes()), b64(point[1:33]), b64(point[33:]), b64(i.ed25519.Public().(ed25519.PublicKey)))
}

func pemOf(t testing.TB, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// sign makes a token of a header and claims in JSON; algorithm says how it is
// signed, whatever the header says.
func sign(t testing.TB, algorithm string, private any, header, claims string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature, err := gojwt.GetSigningMethod(algorithm).Sign(text, private)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// token is sign with a plain header.
func (i *issuer) token(t testing.TB, algorithm, claims string) string {
	t.Helper()
	return sign(t, algorithm, i.private(algorithm), `{"alg":"`+algorithm+`","typ":"JWT"}`, claims)
}

// files is a file system of one file per name.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// noon is when most tests take place.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// verifier has the key file or, if that is empty, the JWKS file of text.
func verifier(t testing.TB, text string, change ...func(*Config)) *Verifier {
	t.Helper()
	c := Config{KeyFile: "key", ReadFile: files{"key": text, "jwks": text}.read, Now: atNoon}
	if strings.HasPrefix(text, "{") {
		c.KeyFile, c.JWKSFile = "", "jwks"
	}
	for _, f := range change {
		f(&c)
	}
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
