package config

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/redisurl"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// storeKinds are the kinds of store.
var storeKinds = []string{InMemory, InRedis}

// storeKind is the codec of the kind of store.
var storeKind = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if strings.Contains(w.text, "://") && redisurl.Check(w.text) == nil {
			m := advised("is the kind of the store, and this is a URL: "+quote(w.text), "write `store: { redis: URL }`, `--store.redis=URL` or `TIDEGATE_STORE_REDIS=URL`")
			m.secret = odd(w.text)
			return "", m
		}
		if !slices.Contains(storeKinds, w.text) {
			return "", notOneOf(w.text, storeKinds)
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// maxInstance is how long the name of an instance may be, in bytes: it is sent with every
// heartbeat.
const maxInstance = 64

// instanceName is the codec of the name of a process for operators.
var instanceName = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if len(w.text) > maxInstance {
			return "", advised(fmt.Sprintf("has %d bytes, and at most %d are shown", len(w.text), maxInstance), "write a shorter name")
		}
		return w.text, mistake{}
	},
	write: func(v string) string { return v },
}

// redisURL is the codec of the URL of Redis. The URL is written without its password, and so read
// back as the same only if it has none.
var redisURL = codec[string]{
	read: func(w rawValue) (string, mistake) {
		if err := redisurl.Check(w.text); err != nil {
			return "", mistake{message: "cannot be used: " + err.Error(), hint: "write a URL such as `redis://127.0.0.1:6379`, `rediss://redis.example.com`, `redis-sentinel://a,b,c/mymaster` or `redis-cluster://a,b,c`", secret: odd(w.text)}
		}
		return w.text, mistake{}
	},
	write: withoutSecrets,
}

// hidden is what is shown for a secret.
const hidden = "***"

// withoutSecrets returns a URL of Redis with stars for its user and passwords; "" for what is not a
// URL.
func withoutSecrets(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	rest, query, asks := strings.Cut(rest, "?")
	hosts, path, deep := strings.Cut(rest, "/")
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		hosts = hidden + hosts[at:]
	}
	shown := scheme + "://" + hosts
	if deep {
		shown += "/" + path
	}
	if !asks {
		return shown
	}
	return shown + "?" + starQuery(query, []string{"db", "prefix", "sentinel_user", "ca", "cert", "key"})
}

// starQuery returns a query with stars for all values but those of the names in plain. Whatever is
// spelt in another way may be a password.
func starQuery(query string, plain []string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); value != "" && !slices.Contains(plain, name) {
			pairs[i] = name + "=" + hidden
		}
	}
	return strings.Join(pairs, "&")
}

// odd reports whether a URL has characters that no URL has, so that nobody can tell where its
// password ends.
func odd(url string) bool { return strings.ContainsAny(url, " \"'") }

// choose takes the map of a setting whose value is implied by a field of the map: in
// store: { memory: { max: 1GiB } }, the store is memory.
func (l *loader) choose(s *setting, n *yamltree.Node) {
	kindOf := map[string]string{InMemory: InMemory, InRedis: InRedis, "shards": InRedis}
	var kinds []yamltree.Field
	for _, f := range n.Fields {
		if kindOf[f.Key.Value] != "" {
			kinds = append(kinds, f)
		}
	}
	switch len(kinds) {
	case 0: // and there may be a variable
	case 1:
		at := l.at(kinds[0].Key)
		l.take(s, []rawValue{{origin: at, text: kindOf[kinds[0].Key.Value]}}, at)
	default:
		l.config.origins[s.path], l.wrong[s.path] = l.at(n), true
		l.tell(l.at(kinds[1].Key), diag.Error, quote(s.path)+" has "+quote(kinds[0].Key.Value)+" and "+quote(kinds[1].Key.Value)+", and counters live in one place", "keep one of them")
	}
	l.section(n, s.path+".")
}

// deriveStore finds the kind of store. A URL of Redis or a list of shards means Redis, unless a
// source of the same or a higher rank names the kind; see origin.rank. Taking both out with a
// higher rank means memory.
func (l *loader) deriveStore() {
	store := &l.config.Store
	chosen, url, shards := l.config.origins["store"], l.config.origins["store.redis"], l.config.origins["store.shards"]
	switch {
	case !l.sound("store", "store.redis", "store.shards"):
	case store.Kind == InMemory && store.Redis.URL != "" && url.rank() > chosen.rank():
		store.Kind, l.config.origins["store"] = InRedis, url
	case store.Kind == InMemory && len(store.Redis.Shards) > 0 && shards.rank() > chosen.rank():
		store.Kind, l.config.origins["store"] = InRedis, shards
	case store.Kind == InRedis && store.Redis.URL == "" && len(store.Redis.Shards) == 0 && max(url.rank(), shards.rank()) > chosen.rank():
		if store.Kind = InMemory; shards.rank() > url.rank() {
			url = shards
		}
		l.config.origins["store"] = url
	}
}

// checkStore reports settings of a store that is not in force, and resets them to their defaults.
func (l *loader) checkStore() {
	store := l.config.Store
	if !l.sound("store", "store.redis", "store.shards") {
		return
	}
	l.checkShards()
	l.checkRegions()
	if store.Kind == InRedis && store.Redis.URL == "" && len(store.Redis.Shards) == 0 && len(store.Redis.Was) == 0 {
		l.clash("store", diag.Error, "`store` is redis, and there is no URL of it", "write `store: { redis: redis://127.0.0.1:6379 }`, or set `TIDEGATE_STORE_REDIS`")
		return
	}
	for _, s := range table {
		values := s.slot.write(l.config)
		if s.of == "" || s.of == store.Kind || len(values) == 0 || values[0] == s.fallback || !l.sound(s.path) {
			continue
		}
		if s.path != "store.redis" && s.path != "store.shards" && s.path != "store.was" { // they may be set before the store is changed
			l.clash(s.path, diag.Warning, quote(s.path)+" does nothing: it is about the store "+quote(s.of)+", and counters are in "+quote(store.Kind), "remove it")
		}
		l.drop(s)
	}
	if store.Kind == InRedis && store.Redis.PasswordFile != "" && strings.Contains(store.Redis.URL, "@") && l.sound("store.password_file") {
		l.clash("store.password_file", diag.Warning, "`store.password_file` does nothing: the URL of Redis has a user or password", "take one of them out")
	}
}

// drop resets a setting to its default.
func (l *loader) drop(s *setting) {
	var values []rawValue
	if s.fallback != "" {
		values = append(values, rawValue{text: s.fallback})
	}
	s.slot.set(l.config, values)
	delete(l.config.origins, s.path)
}
