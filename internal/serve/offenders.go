package serve

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/envoy"
)

// observe records a decision of the gateway.
func (s *server) observe(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	s.metrics.Decided(checks, &d)
	s.noteRefusal("gateway", r, checks, &d)
}

// offended records a decision about an Envoy descriptor to which a domain rule applies.
func (s *server) offended(key string, d *tidegate.Decision, shadow bool) {
	if shadow && d.Limit != nil {
		s.offenders.Tried(key, d.Limit, !d.OK)
		return
	}
	s.offenders.One(key, d)
	if !d.OK {
		s.noteRefusal("rls", nil, []tidegate.Check{{Key: key, Limit: d.Limit}}, d)
	}
}

// nodeName returns the name of this process in a fleet; see fleet.Options.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return fmt.Sprintf("%s:%d", cmp.Or(host, "unknown"), os.Getpid())
}

// subjectOf returns who a key of a limit stands for, as operators may see it. Values that may be
// secret are hashed as in the access log, unless log.keys is plain; with log.keys off, all values
// are hashed.
func (s *server) subjectOf(l *tidegate.Limit, key string) []offenders.Part {
	names, values, secret := s.partsOf(l, key)
	if values == nil { // the key was too long, and is a hash
		return []offenders.Part{{Name: strings.Join(names, ","), Value: key[:min(len(key), 17)], Hashed: true}}
	}
	shown := keysWords[s.config.Log.Keys]
	parts := make([]offenders.Part, len(values))
	for i, value := range values {
		parts[i] = offenders.Part{Name: names[i], Value: value}
		hide := shown == accesslog.Off || shown == accesslog.Hashed && secret(names[i]) && !accesslog.IsAddress(value)
		if hide && value != "" {
			parts[i].Value, parts[i].Hashed = offenders.Hash(value), true
		}
	}
	return parts
}

// partsOf returns the names and values of what a limit counts by, one value for each name, and
// which names stand for secrets. There are no values if the key was too long to contain them.
func (s *server) partsOf(l *tidegate.Limit, key string) (names, values []string, secret func(string) bool) {
	switch {
	case l.Name == resp.RuleName:
		return []string{"key"}, offenders.FramedParts(key), never
	case strings.HasPrefix(l.Scope, "envoy "):
		names, values = s.entriesOf(l, offenders.FramedParts(key))
		return names, values, rules.NamesCredential
	}
	names = offenders.ScopeOf(l)
	values = offenders.SplitKey(key, len(names))
	if len(values) != len(names) || len(key) > tidegate.MaxKey {
		values = nil
	}
	if s.rules == nil {
		return names, values, always
	}
	return names, values, s.rules.live.Set().Credential
}

func never(string) bool  { return false }
func always(string) bool { return true }

// entriesOf returns the names of the entries that a domain rule counts by, and their values. shown
// is nil if the values cannot be told.
func (s *server) entriesOf(l *tidegate.Limit, values []string) (names, shown []string) {
	if names, known := s.countedBy()[l.Scope]; known {
		switch {
		case len(names) == 0:
			return []string{"everyone"}, []string{""}
		case len(names) == len(values):
			return names, values
		}
		return names, nil
	}
	if strings.HasSuffix(l.Scope, " override") && len(values) > 0 && len(values)%2 == 0 { // names and values alternate
		for i := 0; i < len(values); i += 2 {
			names, shown = append(names, values[i]), append(shown, values[i+1])
		}
		return names, shown
	}
	return []string{"descriptor"}, nil
}

// entryNames has what the rules of a set count by, by the scope of their limits.
type entryNames struct {
	set     *envoy.Set
	byScope map[string][]string
}

// countedBy returns what the domain rules in force count by, by the scope of their limits.
func (s *server) countedBy() map[string][]string {
	set := s.domains()
	if known := s.rlsDoor.entryNames.Load(); known != nil && known.set == set {
		return known.byScope
	}
	made := &entryNames{set, make(map[string][]string)}
	for _, r := range domainRules(set) {
		if len(r.Limits) > 0 {
			made.byScope[r.Limits[0].Scope] = r.Counts()
		}
	}
	s.rlsDoor.entryNames.Store(made)
	return made.byScope
}
