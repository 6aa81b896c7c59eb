package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// subject returns the claim sub of a token that holds.
func subject(v *Verifier, token string) string {
	c, ok := v.Claims(token)
	s, found := c.Lookup("sub")
	if ok != found {
		return "neither"
	}
	return s
}

func TestEveryAlgorithm(t *testing.T) {
	i := newIssuer()
	for _, algorithm := range algorithms {
		token := i.token(t, algorithm, `{"sub":"alice"}`)
		for _, source := range []string{i.keyFile(t, algorithm), i.jwks()} {
			v := verifier(t, source)
			if got := subject(v, token); got != "alice" {
				_, err := v.verify(v.inUse.Load().keys, token)
				t.Errorf("%s: %q, want alice: %v", algorithm, got, err)
			}
		}
	}
}

// Each forgery is tried with every source of keys, and none of them twice: a
// remembered verdict must not hide one.
func TestForgedTokensDoNotHold(t *testing.T) {
	i := newIssuer()
	otherRSA, _ := rsa.GenerateKey(rand.Reader, 2048)
	otherEC, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, otherEd, _ := ed25519.GenerateKey(rand.Reader)
	const claims = `{"sub":"mallory"}`
	header := func(algorithm string) string { return `{"alg":"` + algorithm + `"}` }
	f := func(name, token string) {
		t.Helper()
		for _, source := range []string{
			i.keyFile(t, "HS256"), i.keyFile(t, "RS256"), i.keyFile(t, "ES256"), i.keyFile(t, "EdDSA"), i.jwks(),
		} {
			if c, ok := verifier(t, source).Claims(token); ok {
				t.Errorf("%s: holds, and says %s", name, c.object)
			}
		}
	}
	f("other secret", sign(t, "HS256", bytes.Repeat([]byte("x"), 32), header("HS256"), claims))
	f("other RSA key", sign(t, "RS256", otherRSA, header("RS256"), claims))
	f("other EC key", sign(t, "ES256", otherEC, header("ES256"), claims))
	f("other Ed25519 key", sign(t, "EdDSA", otherEd, header("EdDSA"), claims))

	none := gojwt.UnsafeAllowNoneSignatureType
	for _, alg := range []string{"none", "None", "NONE", "", "HS256", "RS256", "ES256", "EdDSA"} {
		f("unsigned, alg "+alg, sign(t, "none", none, header(alg), claims))
	}
	f("no alg", sign(t, "HS256", i.secret, `{}`, claims))
	f("alg null", sign(t, "HS256", i.secret, `{"alg":null}`, claims))
	f("alg array", sign(t, "HS256", i.secret, `{"alg":["HS256"]}`, claims))
	f("header null", sign(t, "HS256", i.secret, `null`, claims))
	f("alg in other case", sign(t, "HS256", i.secret, header("hs256"), claims))

	// Right keys, algorithms that are not on the list.
	for _, alg := range []string{"HS384", "HS512"} {
		f(alg, sign(t, alg, i.secret, header(alg), claims))
	}
	for _, alg := range []string{"RS384", "RS512", "PS256"} {
		f(alg, sign(t, alg, i.rsa, header(alg), claims))
	}

	// The classic confusion: a public key, in every form a program may hold it
	// in, used as a secret.
	for _, public := range []string{"RS256", "ES256", "EdDSA"} {
		text := i.keyFile(t, public)
		for _, secret := range []string{text, strings.TrimSpace(text), strings.ReplaceAll(text, "\n", "")} {
			f(public+" key as a secret", sign(t, "HS256", []byte(secret), header("HS256"), claims))
		}
	}
	f("RSA modulus as a secret", sign(t, "HS256", i.rsa.N.Bytes(), header("HS256"), claims))
	f("Ed25519 key as a secret", sign(t, "HS256", []byte(i.ed25519.Public().(ed25519.PublicKey)), header("HS256"), claims))
	f("signed ES256, says EdDSA", sign(t, "ES256", i.ecdsa, header("EdDSA"), claims))

	// What a header may ask for and does not get.
	f("key of its own", sign(t, "HS256", []byte("its own secret, of more than 32 bytes"),
		`{"alg":"HS256","jwk":{"kty":"oct","k":"aXRzIG93biBzZWNyZXQsIG9mIG1vcmUgdGhhbiAzMiBieXRlcw"}}`, claims))
	f("unknown extension", sign(t, "HS256", i.secret, `{"alg":"HS256","crit":["b64"],"b64":false}`, claims))
	f("empty crit", sign(t, "HS256", i.secret, `{"alg":"HS256","crit":[]}`, claims))
	f("key id a number", sign(t, "HS256", i.secret, `{"alg":"HS256","kid":1}`, claims))
	f("key id null", sign(t, "HS256", i.secret, `{"alg":"HS256","kid":null}`, claims))
}

func TestEveryChangedByteIsNoticed(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.jwks())
	for _, algorithm := range []string{"HS256", "EdDSA"} {
		token := i.token(t, algorithm, `{"sub":"alice"}`)
		for at := range token {
			changed := []byte(token)
			changed[at] ^= 1
			if _, ok := v.Claims(string(changed)); ok {
				t.Errorf("%s: byte %d may be %q", algorithm, at, changed[at])
			}
			if _, ok := v.Claims(token[:at]); ok {
				t.Errorf("%s: cut after %d of %d bytes, it holds", algorithm, at, len(token))
			}
		}
		for _, other := range []string{
			token + "=", token + ".", token + "." + token, "." + token, " " + token, token + "\n",
			"Bearer " + token, strings.ReplaceAll(token, ".", ".\n"), token[:len(token)-2] + "\r\n" + token[len(token)-2:],
		} {
			if _, ok := v.Claims(other); ok {
				t.Errorf("%s: another spelling holds: %q", algorithm, other)
			}
		}
	}
}

func TestDates(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "HS256"))
	f := func(claims string, want bool) {
		t.Helper()
		if _, ok := v.Claims(i.token(t, "HS256", claims)); ok != want {
			t.Errorf("%s: %v", claims, ok)
		}
	}
	at := func(name string, d time.Duration) string { return fmt.Sprintf(`{%q:%d}`, name, noon.Add(d).Unix()) }
	f(`{}`, true)
	f(at("exp", time.Hour), true)
	f(at("exp", 0), true)
	f(at("exp", -29*time.Second), true)
	f(at("exp", -30*time.Second), false)
	f(at("nbf", -time.Hour), true)
	f(at("nbf", 30*time.Second), true)
	f(at("nbf", 31*time.Second), false)
	f(at("iat", 30*time.Second), true)
	f(at("iat", 31*time.Second), false)
	f(fmt.Sprintf(`{"exp":%d.75}`, noon.Unix()), true)
	f(`{"exp":1.9e9}`, true)
	f(`{"exp":0}`, false)
	f(`{"exp":-1}`, false)
	f(`{"exp":9007199254740991}`, true) // what JavaScript calls never

	// A date that cannot be read is not a date left out.
	for _, bad := range []string{`null`, `"1900000000"`, `true`, `[1900000000]`, `{}`, `1e400`, `1e300`, `-1e300`, `""`} {
		for _, name := range []string{"exp", "nbf", "iat"} {
			f(`{"`+name+`":`+bad+`}`, false)
		}
	}
	f(`{"exp":1900000000,"exp":1}`, false)
	f(`{"exp":1,"EXP":1900000000}`, false)
	f(`{"\u0065xp":1}`, false)
}

func TestIssuerAndAudience(t *testing.T) {
	i := newIssuer()
	either := verifier(t, i.keyFile(t, "HS256"))
	held := verifier(t, i.keyFile(t, "HS256"), func(c *Config) { c.Issuer, c.Audience = "https://a.example", "api" })
	f := func(claims string, want bool) {
		t.Helper()
		token := i.token(t, "HS256", claims)
		if _, ok := held.Claims(token); ok != want {
			t.Errorf("%s: %v", claims, ok)
		}
		if _, ok := either.Claims(token); !ok {
			t.Errorf("%s: does not hold where nothing is asked of it", claims)
		}
	}
	f(`{"iss":"https://a.example","aud":"api"}`, true)
	f(`{"iss":"https://a.example","aud":["web","api"]}`, true)
	f(`{"iss":"https://a.example","aud":["web"]}`, false)
	f(`{"iss":"https://a.example","aud":[]}`, false)
	f(`{"iss":"https://a.example","aud":["api",1]}`, false)
	f(`{"iss":"https://a.example","aud":{"api":1}}`, false)
	f(`{"iss":"https://a.example","aud":null}`, false)
	f(`{"iss":"https://a.example"}`, false)
	f(`{"iss":"https://a.example/","aud":"api"}`, false)
	f(`{"iss":["https://a.example"],"aud":"api"}`, false)
	f(`{"iss":null,"aud":"api"}`, false)
	f(`{"aud":"api"}`, false)
	f(`{"ISS":"https://a.example","aud":"api"}`, false)
	f(`{}`, false)
}

func TestKeyIDs(t *testing.T) {
	i := newIssuer()
	f := func(source, algorithm, header string, want bool) {
		t.Helper()
		token := sign(t, algorithm, i.private(algorithm), `{"alg":"`+algorithm+`"`+header+`}`, `{}`)
		if _, ok := verifier(t, source).Claims(token); ok != want {
			t.Errorf("%s with %s: %v", algorithm, header, ok)
		}
	}
	f(i.jwks(), "RS256", `,"kid":"r"`, true)
	f(i.jwks(), "RS256", `,"kid":"e"`, false)
	f(i.jwks(), "RS256", `,"kid":"other"`, false)
	f(i.jwks(), "RS256", `,"kid":"R"`, false)
	f(i.jwks(), "RS256", `,"kid":"../../r"`, false)
	f(i.jwks(), "RS256", ``, true)
	f(i.jwks(), "ES256", `,"kid":"e"`, true)
	f(i.jwks(), "ES256", `,"kid":"r"`, false)
	f(i.keyFile(t, "RS256"), "RS256", `,"kid":"any"`, true) // a key file has no ids
	unnamed := strings.NewReplacer(`"kid":"d",`, ``).Replace(i.jwks())
	f(unnamed, "EdDSA", `,"kid":"any"`, true)
}

// The library looks at the type of a key, too; this is our own half of it.
func TestKeysOfOtherAlgorithmsAreNotTried(t *testing.T) {
	keys := verifier(t, newIssuer().jwks()).inUse.Load().keys
	for _, algorithm := range algorithms {
		found, err := keys.find(gojwt.New(gojwt.GetSigningMethod(algorithm)))
		if err != nil {
			t.Fatal(err)
		}
		set := found.(gojwt.VerificationKeySet)
		if len(set.Keys) != 1 {
			t.Fatalf("%s: %d keys", algorithm, len(set.Keys))
		}
		if k, err := newKey(set.Keys[0]); err != nil || k.algorithm != algorithm {
			t.Errorf("%s: a key for %s, %v", algorithm, k.algorithm, err)
		}
	}
}

func TestClaimsThatAreNoObject(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "HS256"))
	for _, claims := range []string{``, `null`, `[]`, `"sub"`, `1`, `{`, `{"sub":"a"}{}`, `{"sub":"a"} x`, "\xff", `{"sub":1e}`} {
		token := i.token(t, "HS256", claims)
		if _, err := v.verify(v.inUse.Load().keys, token); err == nil {
			t.Errorf("%q: is verified", claims)
		}
		if _, ok := v.Claims(token); ok {
			t.Errorf("%q: holds", claims)
		}
		if _, ok := Unverified(token); ok {
			t.Errorf("%q: can be read", claims)
		}
	}
}

func TestLongTokensAreMissing(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "HS256"))
	longest := ""
	for pad := 12_000; ; pad++ {
		token := i.token(t, "HS256", `{"sub":"alice","pad":"`+strings.Repeat("x", pad)+`"}`)
		_, ok := v.Claims(token)
		_, read := Unverified(token)
		if want := len(token) <= MaxToken; ok != want || read != want {
			t.Fatalf("a token of %d bytes: verified %v, read %v", len(token), ok, read)
		}
		if len(token) > MaxToken {
			break
		}
		longest = token
	}
	if len(longest) < MaxToken-2 {
		t.Errorf("the longest tried has %d bytes", len(longest))
	}
}

// FuzzClaims: whatever comes, no panic, and what holds is what was signed.
func FuzzClaims(f *testing.F) {
	i := newIssuer()
	v := verifier(f, i.jwks())
	signed := map[string]bool{}
	for _, algorithm := range algorithms {
		token := i.token(f, algorithm, `{"sub":"alice","a":{"b":[1,"é"]},"n":1e3,"exp":1900000000}`)
		signed[token[:strings.LastIndexByte(token, '.')]] = true
		f.Add(token, "a.b")
	}
	encode := base64.RawURLEncoding.EncodeToString
	f.Add(encode([]byte(`{"alg":"none"}`))+"."+encode([]byte(`{"sub":"x"}`))+".", "sub")
	f.Add(encode([]byte(`null`))+"."+encode([]byte(`null`))+".", "")
	f.Fuzz(func(t *testing.T, token, name string) {
		c, ok := v.Claims(token)
		c.Lookup(name)
		if ok && !signed[token[:strings.LastIndexByte(token, '.')]] {
			t.Errorf("%s holds", token)
		}
		if again, remembered := v.Claims(token); again != c || remembered != ok {
			t.Errorf("%s: %v, then %v", token, ok, remembered)
		}
		if read, readable := Unverified(token); ok && (!readable || read != c) {
			t.Errorf("%s: holds, but reads as %s", token, read.object)
		} else if !readable && read != (Claims{}) {
			t.Errorf("%s: cannot be read, but says %s", token, read.object)
		}
	})
}
