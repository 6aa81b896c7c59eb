package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func certificate(t *testing.T, i *issuer) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"},
		NotBefore: noon.Add(-2 * time.Hour), NotAfter: noon.Add(-time.Hour), // over: only the key counts
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &i.ecdsa.PublicKey, i.ecdsa)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestFormsOfKeyFiles(t *testing.T) {
	i := newIssuer()
	f := func(name, text, algorithm string, private any) {
		t.Helper()
		token := sign(t, algorithm, private, `{"alg":"`+algorithm+`"}`, `{}`)
		if _, ok := verifier(t, text).Claims(token); !ok {
			t.Errorf("%s does not verify a token signed by it", name)
		}
	}
	f("RSA PUBLIC KEY", block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&i.rsa.PublicKey)), "RS256", i.rsa)
	f("CERTIFICATE", block("CERTIFICATE", certificate(t, i)), "ES256", i.ecdsa)
	f("PEM after a comment", "subject=issuer\n"+i.keyFile(t, "EdDSA")+"\n", "EdDSA", i.ed25519)
	line := strings.Repeat("s", 32)
	f("secret without a line end", line, "HS256", []byte(line))
	f("secret with a line end", line+"\n", "HS256", []byte(line))
	f("secret with a line end of Windows", line+"\r\n", "HS256", []byte(line))
	f("secret with two line ends", line+"\n\n", "HS256", []byte(line+"\n\n"))
	f("binary secret that ends in a line end", "\x00"+line+"\n", "HS256", []byte("\x00"+line+"\n"))
	f("binary secret that starts with a brace", "\n"+strings.Repeat("\x00}{", 12), "HS256", []byte("\n"+strings.Repeat("\x00}{", 12)))
	padded := strings.Replace(i.jwks(), `"AQAB"`, `"AQAB="`, 1)
	f("JWKS with padding", padded, "RS256", i.rsa)
}

func TestBadFilesSayWhatToDo(t *testing.T) {
	i := newIssuer()
	smallRSA := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 1023), E: 65537}
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(i.ed25519)
	der, _ := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	public := i.keyFile(t, "RS256")

	f := func(c Config, text, want string) {
		t.Helper()
		c.ReadFile = files{"secrets/jwt": text}.read
		v, err := New(c)
		if err == nil {
			t.Errorf("%.40q is taken, want %q", text, want)
			return
		}
		if v != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if text != "" && !strings.Contains(err.Error(), "secrets/jwt") {
			t.Errorf("%v: does not name the file", err)
		}
	}
	f(Config{}, "", "name one of the two")
	f(Config{KeyFile: "a", JWKSFile: "b"}, "", "name one of the two")
	f(Config{KeyFile: "absent"}, "", "open absent: file does not exist")
	f(Config{JWKSFile: "absent"}, "", "read the JWT JWKS file")

	file := Config{KeyFile: "secrets/jwt"}
	f(file, " \n", "empty")
	f(file, "hunter2\n", "7 bytes")
	f(file, "hunter2\n", "openssl rand -hex 32")
	f(file, strings.Repeat("x", 31)+"\n", "31 bytes")
	f(file, strings.Repeat("x", maxFile+1), "larger than")
	f(file, i.jwks(), "name it as the JWKS file")
	f(file, block("PRIVATE KEY", pkcs8), "-pubout")
	f(file, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(i.rsa)), "private key")
	f(file, public+public, "several")
	f(file, block("CERTIFICATE", certificate(t, i))+public, "several")
	f(file, public[:len(public)/2], "copied whole")
	f(file, block("PUBLIC KEY", []byte("?")), "asn1")
	f(file, block("CERTIFICATE", []byte("?")), "x509")
	f(file, block("X509 CRL", []byte("?")), "want PUBLIC KEY or CERTIFICATE")
	f(file, block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(smallRSA)), "1024 bits")
	f(file, pemOf(t, &p384.PublicKey), "P-384")

	// A public key that is not PEM would be a secret that everybody knows.
	f(file, string(der), "not in PEM")
	f(file, base64.StdEncoding.EncodeToString(der), "not in PEM")
	f(file, base64.RawURLEncoding.EncodeToString(der), "not in PEM")
	f(file, strings.Join(strings.Split(public, "\n")[1:8], "\n")+"\n", "not in PEM")
	f(file, string(certificate(t, i)), "not in PEM")
	f(file, string(x509.MarshalPKCS1PublicKey(&i.rsa.PublicKey)), "not in PEM")
	f(file, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFh somebody@example", "not in PEM")

	set := Config{JWKSFile: "secrets/jwt"}
	one := func(fields string) string { return `{"keys":[{"kid":"k1",` + fields + `}]}` }
	f(set, public, "name it as the key file")
	f(set, `{"keys":`, "not a JSON Web Key Set")
	f(set, `{"kty":"RSA"}`, "it has no keys")
	f(set, `{"keys":[`+strings.Repeat(`{},`, maxKeys)+`{}]}`, "65 keys")
	f(set, one(`"kty":"EC","crv":"P-521"`), "none of its keys")
	f(set, one(`"kty":"RSA","alg":"RS512"`), "none of its keys")
	f(set, one(`"kty":"oct","alg":"RS256","k":"`+strings.Repeat("A", 43)+`"`), "none of its keys")
	f(set, one(`"kty":"RSA","use":"enc"`), "none of its keys")
	f(set, one(`"kty":"RSA","key_ops":["encrypt"]`), "none of its keys")
	f(set, one(`"kty":"RSA","n":"!","e":"AQAB"`), `key 1 (kid "k1"): its field n`)
	f(set, one(`"kty":"RSA","n":"AQAB"`), "its field e")
	f(set, one(`"kty":"RSA","n":"AQAB","e":"AQAB"`), "17 bits")
	f(set, one(`"kty":"RSA","n":"AQAB","e":"AQABAQAB"`), "too large an exponent")
	f(set, one(`"kty":"RSA","n":"`+strings.Repeat("_", 400)+`","e":"Ag"`), "exponent 2")
	f(set, one(`"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB"`), "private key")
	f(set, one(`"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"`), "3 and 3 bytes")
	f(set, one(`"kty":"EC","crv":"P-256","x":"`+strings.Repeat("A", 43)+`","y":"`+strings.Repeat("A", 43)+`"`), "P256")
	f(set, one(`"kty":"EC","crv":"P-256","x":"`+strings.Repeat("A", 43)+`"`), "its field y")
	f(set, one(`"kty":"OKP","crv":"Ed25519","x":"AQAB"`), "3 bytes")
	f(set, one(`"kty":"oct","k":"AQAB"`), "3 bytes")
	f(set, one(`"kty":"oct"`), "its field k")
}

// An error about a secret must not tell it.
func TestErrorsKeepSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"KeyFile": "hunter2", "JWKSFile": `{"keys":[{"kty":"oct","k":"hunter2"}]}`, "broken": `{"keys":[{"kty":"oct","k":"hunter2]}`,
	} {
		c := Config{KeyFile: "f", ReadFile: files{"f": text}.read}
		if name != "KeyFile" {
			c.KeyFile, c.JWKSFile = "", "f"
		}
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A modulus that no RSA key has passes as a number; verifying by it must fail,
// not panic.
func TestOddModulus(t *testing.T) {
	i := newIssuer()
	for _, n := range []string{strings.Repeat("_", 342) + "A", "g" + strings.Repeat("A", 341)} {
		v := verifier(t, `{"keys":[{"kty":"RSA","n":"`+n+`","e":"AQAB"}]}`)
		if _, ok := v.Claims(i.token(t, "RS256", `{}`)); ok {
			t.Error("holds")
		}
	}
}

// FuzzKeys: no file makes it panic, and what is taken has a key of ours.
func FuzzKeys(f *testing.F) {
	i := newIssuer()
	f.Add([]byte(i.jwks()))
	f.Add([]byte(i.keyFile(f, "ES256")))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----"))
	f.Add([]byte("ssh-rsa AAAA"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func([]byte) (keySet, error){parseKeyFile, parseJWKS} {
			keys, err := parse(text)
			for _, k := range keys {
				if err == nil && (gojwt.GetSigningMethod(k.algorithm) == nil || k.material == nil) {
					t.Errorf("a key %+v", k)
				}
			}
			if err == nil && len(keys) == 0 {
				t.Error("no keys and no error")
			}
		}
	})
}
