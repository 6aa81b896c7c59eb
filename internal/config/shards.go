package config

import (
	"errors"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/redisurl"
)

const shardShape = "write each shard with a name and its URL: `shards: [ { name: a, url: redis://10.0.0.1:6379 }, { name: b, url: redis://10.0.0.2:6379 } ]`"

// shard is the codec of one of several servers: NAME=URL.
var shard = codec[Shard]{
	read: func(w rawValue) (Shard, mistake) {
		s := readShard(w.text)
		if err := redisurl.Shard(s).Check(); err != nil {
			return s, mistake{message: "cannot be used: " + err.Error(), hint: shardShape, secret: odd(w.text)}
		}
		return s, mistake{}
	},
	write: Shard.text,
}

// formerShard is the codec of a former shard: NAME=URL, or NAME if it still is a shard.
var formerShard = codec[Shard]{
	read: func(w rawValue) (Shard, mistake) {
		s := readShard(w.text)
		if s.URL == "" && s.Name != "" {
			return s, mistake{}
		}
		return shard.read(w)
	},
	write: Shard.text,
}

// readShard takes NAME=URL apart. A URL alone has no name.
func readShard(text string) Shard {
	name, url, _ := strings.Cut(text, "=")
	if strings.Contains(name, "://") {
		return Shard{URL: text}
	}
	return Shard{Name: name, URL: url}
}

// text returns NAME=URL without the password, or NAME if there is no URL.
func (s Shard) text() string {
	if s.URL == "" {
		return s.Name
	}
	return s.Name + "=" + withoutSecrets(s.URL)
}

// joinShards puts shards together that were split at the commas between the hosts of Sentinels.
func joinShards(values []rawValue) (joined []rawValue) {
	for _, w := range values {
		if last := len(joined) - 1; last >= 0 && !strings.Contains(w.text, "://") {
			scheme, rest, _ := strings.Cut(joined[last].text, "://")
			if strings.HasSuffix(scheme, "-sentinel") && !strings.Contains(rest, "/") {
				joined[last].text += "," + w.text
				continue
			}
		}
		joined = append(joined, w)
	}
	return joined
}

// checkShards reports what is wrong with a list of shards as a whole.
func (l *loader) checkShards() {
	redis := l.config.Store.Redis
	if !l.sound("store.redis", "store.shards", "store.was") || l.config.Store.Kind != InRedis {
		return
	}
	path, shards := "store.shards", shardURLs(redis.Shards)
	err := redisurl.CheckShards(shards, nil)
	switch {
	case len(shards) > 0 && redis.URL != "":
		err = redisurl.ErrBoth
	case err == nil:
		path, err = "store.was", redisurl.CheckShards(shards, shardURLs(redis.Was))
	}
	if err == nil {
		return
	}
	hint := shardShape
	if errors.Is(err, redisurl.ErrOneShard) {
		hint = "write `store: { redis: URL }`, or list a second shard"
	}
	l.clash(path, diag.Error, quote(path)+" cannot be used: "+err.Error(), hint)
}

func shardURLs(shards []Shard) []redisurl.Shard {
	all := make([]redisurl.Shard, len(shards))
	for i, s := range shards {
		all[i] = redisurl.Shard(s)
	}
	return all
}
