package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/redisurl"
)

// RulesSource is how rules are fetched that are not on this machine.
type RulesSource struct {
	TokenFile    string        // file with the bearer token for HTTP and Central Dogma; default: none
	User         string        // of etcd, or of Redis; default: none
	PasswordFile string        // file with the password of User; default: none
	CA           string        // file with the authorities of sources, in PEM; default: those of the system
	Cert         string        // file with the certificate to show, in PEM; default: none
	Key          string        // file with its private key, in PEM; default: none
	Copy         string        // folder for the last good rules; default: none
	Start        string        // RefuseStart or OpenStart without source and copy; default: RefuseStart
	Wait         time.Duration // of a source for news; default: 60s
}

// OpenStart is the word of [RulesSource] for a start without rules.
const OpenStart = "open"

// IsSource reports whether rules come from elsewhere than a file or folder.
func IsSource(rules string) bool { return strings.Contains(rules, "://") }

// HasSource reports whether some of the rules come from elsewhere.
func (c *Config) HasSource() bool { return slices.ContainsFunc(c.Rules, IsSource) }

// webSchemes are those of sources whose URL has one host and no user.
var webSchemes = []string{"http", "https", "dogma", "dogmas", "etcd", "etcds"}

// redisSchemes are those of sources in Redis.
var redisSchemes = []string{"redis", "rediss", "valkey", "valkeys", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel", "unix"}

// multiHostSchemes are those whose URLs may list hosts, with commas between.
var multiHostSchemes = []string{"etcd", "etcds", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel"}

// ruleSource is a file or folder of rules, or the URL of a source. A URL is written without its
// password, and without most of its query, and so read back as the same only if it has none.
var ruleSource = codec[string]{
	read: func(w rawValue) (string, mistake) {
		scheme, rest, ok := strings.Cut(w.text, "://")
		if !ok {
			return path.read(w)
		}
		switch {
		case slices.Contains(redisSchemes, scheme):
			at, _, _ := strings.Cut(w.text, "#")
			if err := redisurl.Check(at); err != nil {
				return "", mistake{message: "cannot be used: " + err.Error(), hint: "write a URL such as `redis://127.0.0.1:6379#rules`", secret: odd(w.text)}
			}
		case !slices.Contains(webSchemes, scheme):
			return "", advised("is not a source that rules can come from: "+quote(w.text), "write a file, a folder, or a URL with https, redis, etcd or dogma before ://")
		case strings.Contains(hostsOf(rest), "@"):
			return "", mistake{message: "has a user or password in its URL, which others would see", hint: "name a file in `rules_source.token_file`, or `rules_source.user` and `rules_source.password_file`", secret: true}
		default:
			first, _, _ := strings.Cut(hostsOf(rest), ",")
			if u, err := url.Parse(scheme + "://" + first); err != nil || u.Hostname() == "" {
				return "", advised("has no host: "+quote(w.text), "write a URL such as `https://config.example.com/rules.yaml`")
			}
		}
		return w.text, mistake{}
	},
	write: func(v string) string {
		scheme, _, ok := strings.Cut(v, "://")
		switch {
		case ok && slices.Contains(redisSchemes, scheme):
			at, name, named := strings.Cut(v, "#")
			if v = withoutSecrets(at); named {
				v += "#" + name
			}
		case ok:
			return starURL(v, "ref", "branch", "version")
		}
		return v
	},
}

// starURL stars out the query of a URL, which may have a token, except for the parameters shown.
func starURL(v string, shown ...string) string {
	at, query, asks := strings.Cut(v, "?")
	if !asks {
		return v
	}
	return at + "?" + starQuery(query, shown)
}

// hostsOf returns the hosts of a URL; rest is what follows "://".
func hostsOf(rest string) string {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// joinHosts puts URLs together that were split at the commas between their hosts.
func joinHosts(values []rawValue) []rawValue {
	var all []rawValue
	for _, w := range values {
		if n := len(all) - 1; n >= 0 && !strings.Contains(w.text, "://") {
			scheme, rest, ok := strings.Cut(strings.TrimSpace(all[n].text), "://")
			if ok && slices.Contains(multiHostSchemes, scheme) && hostsOf(rest) == rest {
				all[n].text += "," + w.text
				continue
			}
		}
		all = append(all, w)
	}
	return all
}

// checkRulesSource reports settings of sources that contradict each other or have no effect.
func (l *loader) checkRulesSource() {
	if !l.sound("rules") {
		return
	}
	s := l.config.RulesSource
	l.checkPair("rules_source", KeyPair{s.Cert, s.Key})
	if l.config.HasSource() {
		return
	}
	for _, setting := range table {
		if strings.HasPrefix(setting.path, "rules_source.") && l.given(setting.path) && strings.Join(setting.slot.write(l.config), ",") != setting.fallback {
			l.clash(setting.path, diag.Warning, quote(setting.path)+" does nothing: the rules are files of this machine", "name a source in `rules`, as in `rules: https://config.example.com/rules.yaml`")
			return
		}
	}
}
