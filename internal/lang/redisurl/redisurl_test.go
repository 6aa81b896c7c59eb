package redisurl

import (
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	f := func(url string, want Target) {
		t.Helper()
		var got Target
		if err := got.Read(url); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n\tgot  %+v, %v\n\twant %+v", url, got, err, want)
		}
	}
	f("redis://", Target{Addrs: []string{"localhost:6379"}})
	f("valkeys://host/3", Target{Addrs: []string{"host:6379"}, DB: 3, TLS: true})
	f("redis://ann:p%40s%2Fs%25@host", Target{Addrs: []string{"host:6379"}, HasUser: true, Username: "ann", Password: "p@s/s%"})
	f("unix://ann:secret@/run/redis.sock", Target{Addrs: []string{"/run/redis.sock"}, HasUser: true, Username: "ann", Password: "secret"})
	f("redis://a:7000,b,[::1]", Target{Addrs: []string{"a:7000", "b:6379", "[::1]:6379"}, Cluster: true})
	f("rediss-sentinel://a,b:26380/mymaster?db=1&sentinel_user=bob&sentinel_password=x&prefix=limits&ca=/a&cert=/b&key=/c", Target{
		Addrs: []string{"a:26379", "b:26380"}, Master: "mymaster", SentinelUsername: "bob", SentinelPassword: "x",
		DB: 1, Prefix: "limits", TLS: true, CA: "/a", Cert: "/b", Key: "/c",
	})
}

// A URL leaves alone what it says nothing about.
func TestReadKeepsTheRest(t *testing.T) {
	got := Target{Username: "ann", Password: "secret", DB: 3, Prefix: "limits", TLS: true}
	want := got
	want.Addrs = []string{"host:6379"}
	if err := got.Read("redis://host"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestCheck(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		err := Check(url)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
	f("redis://:secret@host", "")
	f("rediss://host?ca=/no/such.pem", "") // files are not read
	f("", "no address: give a URL such as redis://localhost:6379")
	f("localhost:6379", "must begin with redis://")
	f("http://:secret@localhost", "must begin with redis://")
	f("redis://:se/secret@host", "write a slash in a password as %2F")
	f("redis://:secret%zz@host", "a % that is not %25")
	f("redis://:secret@host/x", `database "x": want a number`)
	f("redis://:secret@host?db=-1", `database "-1": want a number`)
	f("redis://:secret@::1", "write an IPv6 address in brackets")
	f("redis://host?x=secret", "the URL has ?x=…: want db, prefix")
	f("redis://host?a=%zz", "the query of the URL")
	f("redis://host?prefix=a:b", `prefix "a:b": use up to 64 letters`)
	f("redis://host?prefix="+strings.Repeat("a", 65), "use up to 64 letters")
	f("redis://host?ca=/x.pem", "use rediss://")
	f("redis://a,b/1", "a cluster has only database 0")
	f("redis-sentinel://a,b", "ends with the name of the master")
	f("unix://run/redis.sock", "write three slashes")
}

// Whatever a URL is, reading it ends with an address or an error, and no error shows the
// password.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"redis://u:hunter2@a,b/1?db=2", "unix://hunter2@/run/x", "redis-sentinel://:hunter2@a/m", "redis://hunter2/@::1?x=%zz", "://", "redis://@@//??"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		var got Target
		if err := got.Read(url); err == nil && len(got.Addrs) == 0 {
			t.Errorf("%q has no address and no error", url)
		}
		_ = Check(url)
		const secret = "hunter2"
		for _, where := range []string{"redis://:" + secret + "@" + url, "unix://:" + secret + "@/" + url} {
			if err := Check(where); err != nil && !strings.Contains(url, secret) && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", where, err)
			}
		}
	})
}
