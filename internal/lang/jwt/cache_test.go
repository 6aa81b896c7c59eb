package jwt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// forgetKeys makes every fresh verdict a no, so that a yes is a remembered one.
func (v *Verifier) forgetKeys() { v.inUse.Load().keys = nil }

func TestVerdictsAreRemembered(t *testing.T) {
	i := newIssuer()
	// f asks at noon, takes the keys away, and asks again: what is remembered
	// does not change, what is not does not hold any more.
	f := func(claims string, after time.Duration, want bool) {
		t.Helper()
		now := noon
		v := verifier(t, i.keyFile(t, "HS256"), func(c *Config) { c.Now = func() time.Time { return now } })
		token := i.token(t, "HS256", claims)
		if _, ok := v.Claims(token); !ok {
			t.Fatalf("%s does not hold", claims)
		}
		v.forgetKeys()
		now = now.Add(after)
		if _, ok := v.Claims(token); ok != want {
			t.Errorf("%s, %s later: %v", claims, after, ok)
		}
	}
	f(`{}`, time.Minute-1, true)
	f(`{}`, time.Minute, false)
	f(`{}`, -time.Second, false) // the clock was set back
	in := func(d time.Duration) string { return fmt.Sprintf(`{"exp":%d}`, noon.Add(d).Unix()) }
	f(in(time.Hour), time.Minute-1, true)
	f(in(time.Hour), time.Minute, false)
	f(in(10*time.Second), 40*time.Second-1, true)
	f(in(10*time.Second), 40*time.Second, false)
	f(in(-20*time.Second), 10*time.Second-1, true)
	f(in(-20*time.Second), 10*time.Second, false)
}

func TestForgedTokensAreRemembered(t *testing.T) {
	i := newIssuer()
	now := noon
	v := verifier(t, i.keyFile(t, "HS256"), func(c *Config) { c.Now = func() time.Time { return now } })
	f := func(token string, after time.Duration, want bool) {
		t.Helper()
		now = noon.Add(after)
		if _, ok := v.Claims(token); ok != want {
			t.Errorf("%s later: %v", after, ok)
		}
	}
	early := i.token(t, "HS256", fmt.Sprintf(`{"nbf":%d}`, noon.Add(31*time.Second).Unix()))
	f(early, 0, false)
	f(early, 10*time.Second-1, false) // it holds since a second, but nobody looked
	f(early, 10*time.Second, true)
}

func TestFloodOfForgedTokens(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "HS256"))
	token := i.token(t, "HS256", `{"sub":"alice"}`)
	v.Claims(token)
	for n := range 20_000 {
		if _, ok := v.Claims(fmt.Sprintf("%s.%d", token, n)); ok {
			t.Fatal("holds")
		}
	}
	if n := v.inUse.Load().cache.len(); n > 16*2*maxBad+1 {
		t.Errorf("%d verdicts are kept", n)
	}
	v.forgetKeys()
	if _, ok := v.Claims(token); !ok {
		t.Error("the flood drove out a token that holds")
	}
}

func (c *cache) len() (n int) {
	for i := range c {
		s := &c[i]
		n += len(s.good.young) + len(s.good.old) + len(s.bad.young) + len(s.bad.old)
	}
	return n
}

func (c *cache) bytes() (n int) {
	for i := range c {
		for _, g := range []map[[sha256.Size]byte]entry{c[i].good.young, c[i].good.old} {
			for _, e := range g {
				n += len(e.claims.object)
			}
		}
	}
	return n
}

func TestCacheIsBounded(t *testing.T) {
	f := func(size, least, most int) {
		t.Helper()
		var c cache
		claims := Claims{jsonvalue.Value("{" + strings.Repeat(" ", size-2) + "}")}
		for n := range 40_000 {
			sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
			c.put(&sum, claims, Valid, noon, noon.Add(maxAge))
			if got, _, ok := c.get(&sum, noon); !ok || got != claims {
				t.Fatalf("token %d is not remembered", n)
			}
		}
		if n := c.len(); n < least || n > most {
			t.Errorf("claims of %d bytes: %d are kept, want %d to %d", size, n, least, most)
		}
		if n := c.bytes(); n > 16<<20 {
			t.Errorf("claims of %d bytes: %d bytes are kept", size, n)
		}
	}
	f(2, 4000, 8000)
	f(12<<10, 500, 1400)
}

func TestReload(t *testing.T) {
	i := newIssuer()
	disk := files{"key": string(i.secret)}
	v, err := New(Config{KeyFile: "key", ReadFile: disk.read, Now: atNoon})
	if err != nil {
		t.Fatal(err)
	}
	secretly, publicly := i.token(t, "HS256", `{"sub":"a"}`), i.token(t, "ES256", `{"sub":"b"}`)
	f := func(when, a, b string) {
		t.Helper()
		if got := subject(v, secretly) + " " + subject(v, publicly); got != a+" "+b {
			t.Errorf("%s: %q", when, got)
		}
	}
	f("at first", "a", "")
	disk["key"] = "short"
	if err := v.Reload(); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a broken file: %v", err)
	}
	f("after a broken file", "a", "")
	delete(disk, "key")
	if err := v.Reload(); err == nil {
		t.Error("an absent file is no error")
	}
	f("after an absent file", "a", "")
	disk["key"] = i.keyFile(t, "ES256")
	if err := v.Reload(); err != nil {
		t.Error(err)
	}
	f("with new keys", "", "b")
}

func TestConcurrentUse(t *testing.T) {
	i := newIssuer()
	var which atomic.Int64
	v := verifier(t, i.keyFile(t, "HS256"), func(c *Config) {
		c.ReadFile = func(string) ([]byte, error) {
			return []byte(i.keyFile(t, algorithms[which.Add(1)%2*3])), nil // HS256 and EdDSA in turn
		}
	})
	tokens := []string{i.token(t, "HS256", `{"sub":"a"}`), i.token(t, "EdDSA", `{"sub":"a"}`)}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 300 {
				if got := subject(v, tokens[n%2]); got != "a" && got != "" {
					t.Errorf("subject %q", got)
				}
				if g == 0 && n%10 == 0 {
					if err := v.Reload(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

const usual = `{"iss":"https://issuer.example/realms/main","aud":["api","web"],"exp":1900000000,"iat":1700000000,` +
	`"sub":"6f1c2d3e-0a4b-4c5d-8e9f-a0b1c2d3e4f5","email":"alice@example.com","scope":"openid profile email",` +
	`"realm":{"role":"premium"},"jti":"0f9e8d7c6b5a49382716","azp":"web","plan":42}`

func TestRememberedTokensDoNotAllocate(t *testing.T) {
	i := newIssuer()
	v := verifier(t, i.keyFile(t, "RS256"))
	token := i.token(t, "RS256", usual)
	if n := testing.AllocsPerRun(100, func() {
		c, _ := v.Claims(token)
		for _, name := range []string{"sub", "realm.role", "plan", "absent"} {
			c.Lookup(name)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkClaims(b *testing.B) {
	i := newIssuer()
	for _, algorithm := range algorithms {
		v := verifier(b, i.keyFile(b, algorithm))
		token := i.token(b, algorithm, usual)
		b.Run(algorithm+"/fresh", func(b *testing.B) {
			b.ReportAllocs()
			keys := v.inUse.Load().keys
			for b.Loop() {
				if _, err := v.verify(keys, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	v := verifier(b, i.keyFile(b, "RS256"))
	token := i.token(b, "RS256", usual)
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Claims(token)
		}
	})
	c, _ := v.Claims(token)
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Lookup("realm.role")
		}
	})
}
