package redis

import (
	"reflect"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/redisurl"
)

func TestURL(t *testing.T) {
	f := func(url string, want Config) {
		t.Helper()
		got := Config{URL: url}
		if err := got.complete(); err != nil {
			t.Errorf("%s: %v", url, err)
			return
		}
		if hasTLS := strings.HasPrefix(url, "rediss") || strings.HasPrefix(url, "valkeys"); hasTLS != (got.TLS != nil) {
			t.Errorf("%s: TLS is %t", url, got.TLS != nil)
		}
		if want.Prefix == "" {
			want.Prefix = DefaultPrefix
		}
		want.URL, want.DialTimeout, want.Deadline, want.GoneAfter, got.TLS = url, DefaultDialTimeout, DefaultDeadline, DefaultGoneAfter, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n\tgot  %+v\n\twant %+v", url, got, want)
		}
	}
	f("redis://localhost:6379", Config{Addrs: []string{"localhost:6379"}})
	f("redis://", Config{Addrs: []string{"localhost:6379"}})
	f("valkey://host", Config{Addrs: []string{"host:6379"}})
	f("redis://host/3", Config{Addrs: []string{"host:6379"}, DB: 3})
	f("rediss://[::1]:6380?db=2", Config{Addrs: []string{"[::1]:6380"}, DB: 2})
	f("rediss://[::1]", Config{Addrs: []string{"[::1]:6379"}})
	f("redis://:secret@host", Config{Addrs: []string{"host:6379"}, Password: "secret"})
	f("redis://ann:p%40s%2Fs%25@host", Config{Addrs: []string{"host:6379"}, Username: "ann", Password: "p@s/s%"})
	f("redis://ann:a@b@host", Config{Addrs: []string{"host:6379"}, Username: "ann", Password: "a@b"})
	f("unix:///run/redis@1.sock?db=1", Config{Addrs: []string{"/run/redis@1.sock"}, DB: 1})
	f("unix://ann:secret@/run/redis.sock", Config{Addrs: []string{"/run/redis.sock"}, Username: "ann", Password: "secret"})
	f("redis://a:7000,b,c:7002", Config{Addrs: []string{"a:7000", "b:6379", "c:7002"}, Cluster: true})
	f("rediss-cluster://a:7000", Config{Addrs: []string{"a:7000"}, Cluster: true})
	f("redis-sentinel://ann:secret@a,b:26380/mymaster?db=1&sentinel_user=bob&sentinel_password=x&prefix=limits", Config{
		Addrs: []string{"a:26379", "b:26380"}, Master: "mymaster", Username: "ann", Password: "secret",
		SentinelUsername: "bob", SentinelPassword: "x", DB: 1, Prefix: "limits",
	})
}

// What is wrong is said, and the password is not.
func TestURLMistakes(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		if err := CheckURL(url); (err == nil) != strings.Contains(want, "open") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckURL(%s): %v; want %q, unless it is about a file", url, err, want)
		}
		s, err := New(url)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s was accepted", url)
			return
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	f("", "no address: give a URL such as redis://localhost:6379")
	f("localhost:6379", "must begin with redis://")
	f("http://:secret@localhost", "must begin with redis://")
	f("redis://:se/secret@host", "write a slash in a password as %2F")
	f("redis://:secret%zz@host", "a % that is not %25")
	f("redis://:secret@host/x", `database "x": want a number`)
	f("redis://:secret@::1", "write an IPv6 address in brackets")
	f("redis://host?x=secret", "the URL has ?x=…: want db, prefix")
	f("redis://host?prefix=a:b", `prefix "a:b": use up to 64 letters`)
	f("redis://host?ca=/x.pem", "use rediss://")
	f("rediss://host?ca=/no/such.pem", "ca: open /no/such.pem")
	f("rediss://host?cert=/no/such.pem", "cert and key: open")
	f("redis://a,b/1", "a cluster has only database 0")
	f("redis-sentinel://a,b", "ends with the name of the master")
	f("unix://run/redis.sock", "write three slashes")
	if _, err := Open(Config{Addrs: []string{"a:1", "b:1"}}); err == nil || !strings.Contains(err.Error(), "a cluster or Sentinels") {
		t.Errorf("several addresses: %v", err)
	}
	if _, err := Open(Config{Addrs: []string{"a:1"}, Cluster: true, Master: "m"}); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Errorf("cluster with a master: %v", err)
	}
}

// A prefix that a URL may have is written into keys as it is, and no other is.
func TestPrefixesNeedNoEscape(t *testing.T) {
	for c := range 256 {
		prefix := "a" + string([]byte{byte(c)})
		target := redisurl.Target{Addrs: []string{"a:1"}, Prefix: prefix}
		if ok := target.Check() == nil; ok != (escape(prefix) == prefix) {
			t.Errorf("%q: valid is %t, escaped it is %q", prefix, ok, escape(prefix))
		}
	}
	for _, n := range []int{1, maxPart, maxPart + 1} {
		prefix := strings.Repeat("a", n)
		target := redisurl.Target{Addrs: []string{"a:1"}, Prefix: prefix}
		if ok := target.Check() == nil; ok != (escape(prefix) == prefix) {
			t.Errorf("%d letters: valid is %t", n, ok)
		}
	}
}
