package jwt

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// parseKeyFile reads a key in PEM, or a secret. What is meant as a public key
// and is not PEM must not become a secret that everybody knows.
func parseKeyFile(text []byte) (keySet, error) {
	trimmed := bytes.TrimSpace(text)
	var material any
	var err error
	switch {
	case bytes.Contains(text, []byte("-----BEGIN")):
		material, err = parsePEM(text)
	case len(trimmed) == 0:
		err = errors.New("it is empty")
	case trimmed[0] == '{' && json.Valid(trimmed):
		err = errors.New("it is JSON: if it is a JSON Web Key Set, name it as the JWKS file")
	case looksPublic(text):
		err = errors.New("it is a public key, but not in PEM: convert it, as with " +
			"`openssl pkey -pubin -inform DER -in key.der` or `ssh-keygen -e -m PKCS8 -f key.pub`")
	default:
		material = secret(text)
	}
	if err != nil {
		return nil, err
	}
	k, err := newKey(material)
	return keySet{k}, err
}

func parsePEM(text []byte) (any, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has a line -----BEGIN, but what follows is not PEM: was it copied whole?")
	}
	if bytes.Contains(rest, []byte("-----BEGIN")) {
		return nil, errors.New("it holds several keys or certificates: keep the one that signs, " +
			"or name a JWKS file, which may have several")
	}
	switch {
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errors.New("it is a private key, which only the issuer should have: " +
			"write its public half with `openssl pkey -in key.pem -pubout`")
	case block.Type == "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	case block.Type == "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case block.Type == "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	return nil, fmt.Errorf("it is a PEM block %q: want PUBLIC KEY or CERTIFICATE", block.Type)
}

// looksPublic finds the other forms of public keys and certificates: DER, its
// base64 without the lines of PEM, and the form of OpenSSH.
func looksPublic(text []byte) bool {
	for _, start := range []string{"ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"} {
		if bytes.HasPrefix(text, []byte(start)) && bytes.ContainsRune(text, ' ') {
			return true
		}
	}
	if isDER(text) {
		return true
	}
	line := strings.Join(strings.Fields(string(text)), "")
	line = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(line)
	der, err := base64.RawStdEncoding.DecodeString(line)
	return err == nil && isDER(der)
}

func isDER(b []byte) bool {
	_, pkix := x509.ParsePKIXPublicKey(b)
	_, pkcs1 := x509.ParsePKCS1PublicKey(b)
	_, cert := x509.ParseCertificate(b)
	return pkix == nil || pkcs1 == nil || cert == nil
}

// secret returns the text without the line end that editors and echo leave, if the
// rest shows that it is text.
func secret(text []byte) []byte {
	line := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	for _, c := range line {
		if c < ' ' || c > '~' {
			return text
		}
	}
	return line
}
