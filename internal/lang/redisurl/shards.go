package redisurl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shard is one of several servers that counters are spread over.
type Shard struct{ Name, URL string }

// MaxShards is how many shards there may be.
const MaxShards = 64

const maxShardName = 64

// Errors of CheckShards.
var (
	// ErrBoth is for a list of shards beside the URL of a Redis.
	ErrBoth = errors.New("there are shards and the URL of a Redis, and counters live in one place: keep one of them")
	// ErrOneShard is for a list of one.
	ErrOneShard = errors.New("there is one shard, and it takes two to spread counters: give its URL as that of a single Redis")
)

// Check reports what is wrong with a shard by itself.
func (s Shard) Check() error {
	switch {
	case s.Name == "":
		return errors.New("a shard has no name: the name decides which keys live there, and stays when the server moves")
	case len(s.Name) > maxShardName || !validPrefix(s.Name):
		return fmt.Errorf("the name %.80q of a shard: use up to %d letters, digits and ._@-", s.Name, maxShardName)
	}
	t, err := s.target()
	switch {
	case err != nil:
		return fmt.Errorf("shard %s: %w", s.Name, err)
	case t.Cluster:
		return fmt.Errorf("shard %s: it is a cluster, which spreads its keys itself: give a single server, or Sentinels", s.Name)
	}
	return nil
}

func (s Shard) target() (t Target, err error) {
	if s.URL == "" {
		return t, ErrNone
	}
	if err := t.Read(s.URL); err != nil {
		return t, err
	}
	return t, Check(s.URL)
}

// CheckShards reports what is wrong with the shards of a store, and with those that it had
// before they were changed, if there are any.
func CheckShards(shards, was []Shard) error {
	switch {
	case len(shards) == 0 && len(was) > 0:
		return errors.New("there are former shards and no present ones: list those in shards")
	case len(shards) == 0:
		return nil
	case len(shards) == 1:
		return ErrOneShard
	case max(len(shards), len(was)) > MaxShards:
		return fmt.Errorf("there are %d shards: at most %d can be used", max(len(shards), len(was)), MaxShards)
	}
	if err := checkList(shards); err != nil {
		return err
	}
	complete := make([]Shard, 0, len(was))
	for _, old := range was {
		i := slices.IndexFunc(shards, func(s Shard) bool { return s.Name == old.Name })
		if i >= 0 && old.URL != "" && old.URL != shards[i].URL {
			return fmt.Errorf("shard %s has another URL among the former shards: a name is one server; leave the URL out there", old.Name)
		}
		if i >= 0 {
			old.URL = shards[i].URL
		}
		complete = append(complete, old)
	}
	if err := checkList(complete); err != nil {
		return fmt.Errorf("former shards: %w", err)
	}
	for _, old := range complete {
		for _, s := range shards {
			if s.Name != old.Name && s.server() == old.server() {
				return fmt.Errorf("the former shard %s and shard %s are the same server, which would count twice: a server keeps its name", old.Name, s.Name)
			}
		}
	}
	if len(was) > 0 && sameNames(shards, was) {
		return errors.New("the former shards are the present ones: leave them out")
	}
	prefix := prefixOf(shards[0])
	for _, s := range slices.Concat(shards, complete) {
		if p := prefixOf(s); p != prefix {
			return fmt.Errorf("shard %s has the prefix %q and shard %s %q: give all the same", s.Name, p, shards[0].Name, prefix)
		}
	}
	return nil
}

// checkList checks each of several shards, and that they are not the same.
func checkList(all []Shard) error {
	names, servers := make(map[string]string), make(map[string]string)
	for _, s := range all {
		if err := s.Check(); err != nil {
			return err
		}
		fold := strings.ToLower(s.Name)
		switch other := names[fold]; other {
		case "":
		case s.Name:
			return fmt.Errorf("two shards are called %s: give each a name of its own", s.Name)
		default:
			return fmt.Errorf("the names of shards %s and %s differ by case alone: give each a name of its own", other, s.Name)
		}
		names[fold] = s.Name
		server := s.server()
		if other := servers[server]; other != "" {
			return fmt.Errorf("shards %s and %s are the same server", other, s.Name)
		}
		servers[server] = s.Name
	}
	return nil
}

// server names what the URL of a shard connects to.
func (s Shard) server() string {
	t, _ := s.target()
	return fmt.Sprint(strings.Join(t.Addrs, ","), " ", t.Master, " ", t.DB)
}

func sameNames(a, b []Shard) bool {
	names := func(all []Shard) []string {
		var list []string
		for _, s := range all {
			list = append(list, s.Name)
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(names(a), names(b))
}

func prefixOf(s Shard) string {
	t, _ := s.target()
	return t.Prefix
}
