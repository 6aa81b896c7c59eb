package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// jwk is what counts of a JSON Web Key: RFC 7517, section 4, and RFC 7518,
// section 6.
type jwk struct {
	Type       string   `json:"kty"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	ID         string   `json:"kid"`
	Curve      string   `json:"crv"`
	N, E       string   // RSA
	X, Y       string   // EC; OKP has X alone
	K          string   // oct
	D          string   // the private half of all but oct
}

// parseJWKS takes the keys that verify one of our algorithms. A set may have
// others, for other purposes; a broken one is an error all the same.
func parseJWKS(text []byte) (keySet, error) { return parseSet(text, false) }

// parsePublished is parseJWKS for a set that somebody else publishes: a key that is of no
// use here, or broken, does not keep the others from being used. What everybody can read
// is not a secret, so a shared one is not taken.
func parsePublished(text []byte) (keySet, error) { return parseSet(text, true) }

func parseSet(text []byte, published bool) (keySet, error) {
	var file struct {
		Keys []jwk `json:"keys"`
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, errors.New("it is PEM and not JSON: name it as the key file")
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("it is not a JSON Web Key Set: %w", err)
	}
	if len(file.Keys) == 0 {
		return nil, errors.New(`it has no keys: want {"keys": [...]}, each with at least kty`)
	}
	if len(file.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys: at most %d are taken; leave out those that sign no more", len(file.Keys), maxKeys)
	}
	var keys keySet
	for i, j := range file.Keys {
		if !j.signs() || published && j.Type == "oct" {
			continue
		}
		k, err := j.key()
		if err != nil && published {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("key %d (kid %q): %w", i+1, j.ID, err)
		}
		if j.Algorithm == "" || j.Algorithm == k.algorithm {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("none of its keys is one that verifies %s", strings.Join(algorithms, ", "))
	}
	return keys, nil
}

// signs reports whether j is a key of ours by its own account.
func (j *jwk) signs() bool {
	if j.Use != "" && j.Use != "sig" {
		return false
	}
	if len(j.Operations) > 0 && !slices.Contains(j.Operations, "verify") {
		return false
	}
	if j.Algorithm != "" && !slices.Contains(algorithms, j.Algorithm) {
		return false
	}
	switch j.Type {
	case "RSA", "oct":
		return true
	case "EC":
		return j.Curve == "P-256"
	case "OKP":
		return j.Curve == "Ed25519"
	}
	return false
}

func (j *jwk) key() (key, error) {
	if j.D != "" {
		return key{}, errors.New("it is a private key, which only the issuer should have: leave out d, p, q, dp, dq and qi")
	}
	material, err := j.material()
	if err != nil {
		return key{}, err
	}
	k, err := newKey(material)
	k.id = j.ID
	return k, err
}

func (j *jwk) material() (any, error) {
	switch j.Type {
	case "RSA":
		n, err := decode("n", j.N)
		if err != nil {
			return nil, err
		}
		e, err := decode("e", j.E)
		if err != nil {
			return nil, err
		}
		exponent := new(big.Int).SetBytes(e)
		if exponent.BitLen() > 31 {
			return nil, errors.New("its field e is too large an exponent: 65537 is AQAB")
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}, nil
	case "EC":
		x, err := decode("x", j.X)
		if err != nil {
			return nil, err
		}
		y, err := decode("y", j.Y)
		if err != nil {
			return nil, err
		}
		if len(x) != 32 || len(y) != 32 {
			return nil, fmt.Errorf("its fields x and y have %d and %d bytes: on P-256 both have 32", len(x), len(y))
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	case "OKP":
		x, err := decode("x", j.X)
		if err == nil && len(x) != ed25519.PublicKeySize {
			err = fmt.Errorf("its field x has %d bytes: an Ed25519 key has %d", len(x), ed25519.PublicKeySize)
		}
		return ed25519.PublicKey(x), err
	}
	return decode("k", j.K)
}

func decode(field, text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("its field %s is missing or not base64url", field)
	}
	return b, nil
}
