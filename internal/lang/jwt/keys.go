package jwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"

	gojwt "github.com/golang-jwt/jwt/v5"
)

const (
	maxFile   = 1 << 20
	maxKeys   = 64 // a token without a key id is tried with each that fits
	minSecret = 32 // RFC 7518, 3.2
	minRSA    = 2048
)

// algorithms are all that a token may be signed with.
var algorithms = []string{"HS256", "RS256", "ES256", "EdDSA"}

// key verifies the signatures of one algorithm.
type key struct {
	id        string // "" fits every token
	algorithm string
	material  gojwt.VerificationKey
}

// newKey finds the algorithm by the type of the key, never by what a token says.
func newKey(material any) (key, error) {
	switch m := material.(type) {
	case []byte:
		if len(m) < minSecret {
			return key{}, fmt.Errorf("the secret has %d bytes, and one below %d can be guessed: "+
				"make one with `openssl rand -hex 32` and give it to the issuer, too", len(m), minSecret)
		}
		return key{algorithm: "HS256", material: m}, nil
	case *rsa.PublicKey:
		if bits := m.N.BitLen(); bits < minRSA {
			return key{}, fmt.Errorf("the RSA key has %d bits: RS256 needs at least %d", bits, minRSA)
		}
		if m.E < 3 || m.E%2 == 0 {
			return key{}, fmt.Errorf("the RSA key has the exponent %d: want an odd one from 3 on, as 65537", m.E)
		}
		return key{algorithm: "RS256", material: m}, nil
	case *ecdsa.PublicKey:
		if m.Curve != elliptic.P256() {
			return key{}, fmt.Errorf("the key is on the curve %s: ES256 is on P-256", m.Curve.Params().Name)
		}
		return key{algorithm: "ES256", material: m}, nil
	case ed25519.PublicKey:
		return key{algorithm: "EdDSA", material: m}, nil
	}
	return key{}, fmt.Errorf("a key of type %T verifies none of %v", material, algorithms)
}

type keySet []key

// find returns the keys to try on a token. The library has made sure that its
// algorithm is one of ours.
func (s keySet) find(t *gojwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("the token demands extensions (crit), and none is known here")
	}
	id, ok := t.Header["kid"].(string)
	if _, there := t.Header["kid"]; there && !ok {
		return nil, errors.New("the key id of the token is not a string")
	}
	var fit gojwt.VerificationKeySet
	for _, k := range s {
		if k.algorithm == t.Method.Alg() && (id == "" || k.id == "" || k.id == id) {
			fit.Keys = append(fit.Keys, k.material)
		}
	}
	if len(fit.Keys) == 0 {
		return nil, fmt.Errorf("%w: %s with the id %q", errUnknownKey, t.Method.Alg(), id)
	}
	return fit, nil
}
