package config

import (
	"regexp"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

const (
	envPrefix = "TIDEGATE_"
	envFile   = envPrefix + "CONFIG" // names the configuration file
)

// elsewhere are variables that are not settings: those of other commands and of tests.
var elsewhere = []string{
	envFile, "TIDEGATE_SERVER", "TIDEGATE_TOKEN", "TIDEGATE_TOKEN_FILE", "TIDEGATE_CA_FILE", "TIDEGATE_CERT_FILE", "TIDEGATE_KEY_FILE",
	"TIDEGATE_CHECK_SERVER", "TIDEGATE_CHECK_TOKEN", "TIDEGATE_AUTHOR", "TIDEGATE_AUDIT", "TIDEGATE_LONG", "TIDEGATE_SKIPPED",
}

// serviceLink are the variables that Kubernetes gives to every container beside
// a service that is called tidegate, or tidegate-something.
var serviceLink = regexp.MustCompile(`^TIDEGATE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// environment returns the variables that have our prefix and are not empty. An empty
// variable counts as not set, because many tools cannot leave one out.
func (l *loader) environment() map[string]string {
	vars := make(map[string]string)
	for _, entry := range l.o.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, envPrefix) && strings.TrimSpace(value) != "" {
			vars[name] = value
		}
	}
	return vars
}

// takeEnvironment takes settings from variables, and warns about those that are unknown.
func (l *loader) takeEnvironment() {
	vars := l.environment()
	var known []string
	for _, s := range table {
		known = append(known, s.env())
		value, ok := vars[s.env()]
		if !ok {
			continue
		}
		at := outside(s.env(), value)
		if s.slot.many {
			l.take(s, s.split(value, at), at)
		} else {
			l.take(s, []rawValue{{origin: at, text: value}}, at)
		}
	}
	for name := range vars {
		if !slices.Contains(known, name) && !slices.Contains(elsewhere, name) && !serviceLink.MatchString(name) {
			l.unknownVariable(name, known)
		}
	}
}

// unknownVariable warns about a variable, without its value: that may be a secret under a
// wrong name.
func (l *loader) unknownVariable(name string, known []string) {
	hint := "remove it; `tidegate config` lists the settings"
	var words []string // without the prefix, which would make everything look near
	for _, k := range known {
		words = append(words, strings.TrimPrefix(k, envPrefix))
	}
	near := diag.Nearest(strings.TrimPrefix(name, envPrefix), words)
	if i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(k, name+"_") }); i >= 0 {
		near = words[i]
	}
	if near != "" {
		hint = "did you mean " + quote(envPrefix+near) + "?"
	}
	at := origin{}
	at.pos.File = name
	l.tell(at, diag.Warning, "no setting has this variable, and it is ignored", hint)
}
