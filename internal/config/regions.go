package config

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/redisurl"
)

const regionShape = "write each of the other regions with a name and the URL of its Redis: `region: eu, regions: [ { name: us, url: redis://10.1.0.1:6379 } ]`"

// regionName is the codec of the name of this region.
var regionName = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if err := redisurl.CheckRegionName(w.text); err != nil {
			return "", advised("cannot be used: "+err.Error(), "write a short name such as `eu`")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// otherRegion is the codec of another region: NAME=URL, or NAME if `tidegate region-sync` tells it
// what is counted here.
var otherRegion = codec[Shard]{
	read: func(w rawValue) (Shard, mistake) {
		r := readShard(w.text)
		if err := redisurl.Region(r).Check(); err != nil {
			return r, mistake{message: "cannot be used: " + err.Error(), hint: regionShape, secret: odd(w.text)}
		}
		return r, mistake{}
	},
	write: Shard.text,
}

// checkRegions reports what is wrong with the regions as a whole.
func (l *loader) checkRegions() {
	redis := l.config.Store.Redis
	if !l.sound("store.redis", "store.shards", "store.region", "store.regions") || l.config.Store.Kind != InRedis {
		return
	}
	others := make([]redisurl.Region, len(redis.Regions))
	for i, r := range redis.Regions {
		others[i] = redisurl.Region(r)
	}
	path := "store.regions"
	if len(others) == 0 {
		path = "store.region"
	}
	if err := redisurl.CheckRegions(redisurl.Region{Name: redis.Region, URL: redis.URL}, others); err != nil {
		l.clash(path, diag.Error, quote(path)+" cannot be used: "+err.Error(), regionShape)
		return
	}
	if len(others) == 0 {
		return
	}
	if len(redis.Shards) > 0 || (redisurl.Region{Name: redis.Region, URL: redis.URL}).Check() != nil {
		l.clash(path, diag.Error, quote(path)+" cannot be used: regions need a single server each, or Sentinels; not a cluster, nor shards", "give this region one Redis, or take the regions out")
	}
}
