package config

import "testing"

func TestURLsWithoutSecrets(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		if got := withoutSecrets(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
	f("redis://localhost", "redis://localhost")
	f("redis://:secret@localhost/1", "redis://***@localhost/1")
	f("rediss://ann:a@secret@localhost:6380", "rediss://***@localhost:6380")
	f("unix:///run/redis@1.sock?db=1", "unix:///run/redis@1.sock?db=1")
	f("unix://ann:secret@/run/redis.sock", "unix://***@/run/redis.sock")
	f("redis-sentinel://ann:secret@a,b:26380/mymaster?db=1&sentinel_user=bob&sentinel_password=secret&prefix=x",
		"redis-sentinel://***@a,b:26380/mymaster?db=1&sentinel_user=bob&sentinel_password=***&prefix=x")
	f("redis-sentinel://a/m?sentinel%5Fpassword=secret", "redis-sentinel://a/m?sentinel%5Fpassword=***")
	f("", "")
}

// A URL of keys may have a token in its query, which `tidegate config` does not show.
func TestShownKeySet(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		if got := keySet.write(value); got != want {
			t.Errorf("%s is shown as %s, want %s", value, got, want)
		}
	}
	f("https://a.example/jwks.json", "https://a.example/jwks.json")
	f("https://a.example/jwks.json?token=secret&x=y", "https://a.example/jwks.json?token=***&x=***")
	f("/etc/tidegate/jwks?.json", "/etc/tidegate/jwks?.json")
}
