package redisurl

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckShards(t *testing.T) {
	a, b, c := Shard{"a", "redis://h1"}, Shard{"b", "rediss://h2/3"}, Shard{"c", "redis-sentinel://x,y/mymaster"}
	f := func(want string, shards []Shard, was ...Shard) {
		t.Helper()
		err := CheckShards(shards, was)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v after %v: %v, want %q", shards, was, err, want)
		}
	}
	f("", nil)
	f("", []Shard{a, b, c})
	f("", []Shard{a, b}, a)
	f("", []Shard{a, b}, Shard{Name: "b"}, c)
	f("", []Shard{{"a", "redis://h/1"}, {"b", "redis://h/2"}}) // two databases of one server
	f("one shard", []Shard{a})
	f("has no name", []Shard{a, {"", "redis://h2"}})
	f("two shards are called a", []Shard{a, {"a", "redis://h2"}})
	f("the same server", []Shard{a, {"b", "redis://u:p@h1:6379/0"}})
	f("the same server", []Shard{c, {"d", "redis-sentinel://x:26379,y/mymaster"}})
	f("it is a cluster", []Shard{a, {"b", "redis://h2,h3"}})
	f("shard b: no address", []Shard{a, {"b", ""}})
	f("use rediss://", []Shard{a, {"b", "redis://h2?ca=/ca.pem"}})
	f("letters, digits", []Shard{a, {"b/2", "redis://h2"}})
	f("letters, digits", []Shard{a, {strings.Repeat("b", 65), "redis://h2"}})
	f("give all the same", []Shard{a, {"b", "redis://h2?prefix=x"}})
	f("give all the same", []Shard{a, b}, Shard{"d", "redis://h4?prefix=x"})
	f("A and a differ by case alone", []Shard{{"A", "redis://h9"}, b, a})
	f("differ by case alone", []Shard{a, b}, a, Shard{"A", "redis://h9"})
	f("former shard A and shard a are the same server", []Shard{a, b}, Shard{"A", "redis://h1:6379"}, b)
	f("former shard old and shard c are the same server", []Shard{a, c}, a, Shard{"old", "redis-sentinel://x:26379,y/mymaster"})
	f("no present ones", nil, a)
	f("another URL", []Shard{a, b}, Shard{"a", "redis://h9"})
	f("former shards: shard d: no address", []Shard{a, b}, Shard{Name: "d"})
	f("former shards: two shards", []Shard{a, b}, a, a)
	f("are the present ones", []Shard{a, b}, b, a)
	var many []Shard
	for i := range MaxShards + 1 {
		many = append(many, Shard{fmt.Sprint(i), fmt.Sprint("redis://h", i)})
	}
	f("", many[1:])
	f("at most 64", many)
	if err := CheckShards([]Shard{a, {"b", "http://ann:s3cret@h2"}}, nil); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}
