package config

import (
	"regexp"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// unknown reports a field that does not exist.
func (l *loader) unknown(f yamltree.Field, prefix string) {
	at, in := l.at(f.Key), "the configuration"
	if prefix != "" {
		in = quote(strings.TrimSuffix(prefix, "."))
	}
	if secretWord.MatchString(f.Key.Value) {
		l.hidden[at.pos.Line] = true // the next line probably contains a secret
	}
	l.tell(at, diag.Error, "unknown field "+quote(f.Key.Value)+" in "+in, adviseField(f.Key.Value, prefix))
}

// secretWord matches names of fields that contain secrets in other programs.
var secretWord = regexp.MustCompile(`(?i)token|secret|password`)

var fieldName = regexp.MustCompile(`([\w.-]+)["']?\s*:`)

// hasSecretField reports whether a line that is not valid YAML seems to contain a secret: a field
// with such a name, except for ours, which name files.
func hasSecretField(line string) bool {
	for _, found := range fieldName.FindAllStringSubmatch(line, -1) {
		ours := slices.ContainsFunc(table, func(s *setting) bool { return s.leaf() == found[1] })
		if secretWord.MatchString(found[1]) && !ours {
			return true
		}
	}
	return false
}

var quoted = regexp.MustCompile("`[^`]{4,}`|\"[^\"]{4,}\"")

// withoutQuoted removes from a message what it quotes of a line, except for marks such as `]`.
func withoutQuoted(message string) string { return quoted.ReplaceAllString(message, "`…`") }

// adviseField returns the hint for an unknown field.
func adviseField(word, prefix string) string {
	if hint, ok := fieldAdvice[prefix+word]; ok {
		return hint
	}
	if s := lookup(word); s != nil && strings.Contains(word, ".") {
		return "a dot is for flags; write " + quote(s.nested())
	}
	known := fields(prefix)
	if near := diag.Nearest(word, known); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	var homes []string
	for _, s := range table {
		if s.leaf() == word {
			homes = append(homes, s.nested())
		}
	}
	if len(homes) > 0 {
		return "did you mean " + diag.Choice(homes) + "?"
	}
	if len(known) == 0 { // in an item of a list
		return "remove it"
	}
	return "the fields are " + strings.Join(known, ", ")
}

// nested returns the setting as it is written from the top of the file: listen: { admin: … }.
func (s *setting) nested() string {
	words := strings.Split(s.path, ".")
	value := yamlText(s.example)
	if s.slot.many {
		value = "[" + value + "]"
	}
	return strings.Join(words, ": { ") + ": " + value + strings.Repeat(" }", len(words)-1)
}

// fieldAdvice has hints for words from other programs, and for common mistakes.
var fieldAdvice = map[string]string{
	"version":           "remove it: the rule file has a version, the configuration has none",
	"identify":          inRules("identify"),
	"lists":             inRules("lists"),
	"exempt":            inRules("exempt"),
	"defaults":          inRules("defaults"),
	"respond":           inRules("respond"),
	"headers":           inRules("headers"),
	"domain":            inRules("domain"),
	"limits.rate":       inRules("rate"),
	"port":              "write `listen: { gateway: 127.0.0.1:8080 }`",
	"address":           "write `listen: { gateway: 127.0.0.1:8080 }`",
	"bind":              "write `listen: { gateway: 127.0.0.1:8080 }`",
	"server":            "write `listen: { gateway: 127.0.0.1:8080 }`",
	"listen.http":       "did you mean `gateway`?",
	"listen.https":      "write `gateway: :443`, and beside `listen:` the certificate: `tls: { cert: cert.pem, key: key.pem }`",
	"listen.metrics":    "did you mean `admin`? metrics are served there",
	"listen.grpc":       "did you mean `rls`?",
	"listen.envoy":      "did you mean `rls`?",
	"admin.listen":      "write `listen: { admin: 127.0.0.1:9090 }`",
	"admin.address":     "write `listen: { admin: 127.0.0.1:9090 }`",
	"admin.token":       "write the token into a file that only Tidegate may read, and name it: `token_file: admin.token`",
	"backend":           "did you mean `upstreams`?",
	"backends":          "did you mean `upstreams`?",
	"proxy":             "write `upstreams: [http://127.0.0.1:9000]`",
	"target":            "did you mean `upstreams`?",
	"upstreams.weight":  "there are no weights: a request goes to the upstream with the fewest in flight",
	"redis":             "write `store: { redis: redis://127.0.0.1:6379 }`",
	"store.url":         "did you mean `redis`?",
	"store.host":        "write `redis: redis://127.0.0.1:6379`",
	"store.address":     "write `redis: redis://127.0.0.1:6379`",
	"store.sentinel":    "write `redis: redis-sentinel://a:26379,b:26379,c:26379/mymaster`",
	"store.shard":       "did you mean `shards`?",
	"store.servers":     "did you mean `shards`?",
	"store.former":      "did you mean `was`?",
	"store.cluster":     "write `redis: redis-cluster://a:6379,b:6379,c:6379`",
	"store.user":        "did you mean `username`?",
	"store.password":    "write the password into a file that only Tidegate may read, and name it: `password_file: redis.password`",
	"store.tls":         "write `rediss://` in place of `redis://`",
	"store.timeout":     "did you mean `deadline`?",
	"store.prefix":      "add it to the URL, as in `redis: redis://127.0.0.1:6379?prefix=tg`",
	"store.max":         "write `memory: { max: 1GiB }`",
	"metrics":           "remove it: metrics are at /metrics of `listen: { admin: 127.0.0.1:9090 }`",
	"timeout":           "write `limits: { upstream: 1m }` for how long an upstream may take",
	"timeouts":          "did you mean `limits`? it has the timeouts: `limits: { read_header: 10s, upstream: 1m }`",
	"limits.timeout":    "did you mean `upstream`?",
	"limits.max_body":   "did you mean `body`?",
	"limits.keepalive":  "did you mean `idle`?",
	"logging":           "did you mean `log`?",
	"log_level":         "write `log: { level: info }`",
	"log.file":          "did you mean `access`?",
	"log.output":        "did you mean `access`?",
	"tls.certificate":   "did you mean `cert`?",
	"tls.cert_file":     "did you mean `cert`?",
	"tls.key_file":      "did you mean `key`?",
	"trust.cidrs":       "did you mean `proxies`?",
	"trust.jwt.secret":  "write the secret into a file that only Tidegate may read, and name it: `key: jwt.key`",
	"trust.jwt.url":     "did you mean `jwks`? it takes a URL as well as a file",
	"trust.api_key":     "did you mean `api_keys`?",
	"health.interval":   "did you mean `every`?",
	"health.threshold":  "did you mean `unhealthy_after`?",
	"shutdown":          "did you mean `drain`?",
	"store.memory.size": "did you mean `max`?",
}

func inRules(word string) string {
	return quote(word) + " belongs in the rule file, which is named here: `rules: rules.yaml`"
}
