package cli

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// subject returns the identity that rules count by.
func (a *answers) subject() string {
	return map[string]string{"ip": "ip", "user": "user", "api-key": "api_key"}[a.Per]
}

// rules returns the text of the rule file.
func (a *answers) rules() string {
	var b strings.Builder
	b.WriteString("# Who may do how much. Check it with tidegate lint rules.yaml, test it with tidegate test rules_test.yaml.\n# Editors complete its words with what tidegate schema rules prints.\nversion: 1\n")
	switch a.Per {
	case "user":
		b.WriteString("identify:\n  user: jwt.sub # of a verified token; a request without one is counted by its address\n")
	case "api-key":
		b.WriteString("identify:\n  api_key: client header X-Api-Key # callers can invent one, so addresses are limited as well\n")
	}
	fmt.Fprintf(&b, "rules:\n  - name: api\n    match: %s\n    per: %s\n    limits: %s\n", yamlText(a.Match), a.subject(), a.limitsText(1))
	if a.Per == "api-key" {
		fmt.Fprintf(&b, "  - name: callers\n    match: %s\n    per: ip\n    limits: %s\n", yamlText(a.Match), a.limitsText(10))
	}
	if login := given(a.Login); login != "" {
		fmt.Fprintf(&b, `  - name: login
    match: %s
    per: ip
    limits: %d/15m
    count: { status: [401, 403] } # a right password costs nothing
    block: 15m
`, yamlText(login), loginFailures)
	}
	return b.String()
}

const loginFailures = 5

// least returns the smallest number of the limits: so many pass at one instant.
func (a *answers) least() int64 {
	least := int64(1)
	for i, l := range a.limits() {
		if i == 0 || l.events < least {
			least = l.events
		}
	}
	return least
}

// tests returns the text of the test.
func (a *answers) tests() string {
	const each = 200 // a limit of more is not used up
	var b strings.Builder
	b.WriteString("# Run it with tidegate test rules_test.yaml; time is virtual. Editors complete its words with what tidegate schema tests prints.\nrules: rules.yaml\ncases:\n  - name: the limit holds\n    steps:\n")
	step := func(request, rest string) { fmt.Fprintf(&b, "      - { request: %s, %s }\n", yamlText(request), rest) }
	as := func(who, address string) string {
		if a.Per == "ip" {
			return "as: { ip: " + address + " }"
		}
		return "as: { " + a.subject() + ": " + who + " }"
	}
	request, n := sampleOf(a.Match), a.least()
	if n <= each {
		step(request, fmt.Sprintf("%s, times: %d, want: ok", as("ann", "192.0.2.1"), n))
		step(request, as("ann", "192.0.2.1")+", want: refused, rule: api")
	} else {
		rest := as("ann", "192.0.2.1") + ", want: ok"
		if login := sampleOf(given(a.Login)); methodOf(login) != methodOf(request) { // else the smaller limit of logins may be told
			rest += fmt.Sprintf(", rule: api, remaining: %d", n-1)
		}
		step(request, rest)
	}
	b.WriteString("  - name: each has a limit of its own\n    steps:\n")
	step(request, fmt.Sprintf("%s, times: %d, want: ok", as("ann", "192.0.2.1"), min(n, each)))
	step(request, as("bob", "198.51.100.7")+", want: ok")
	if login := given(a.Login); login != "" {
		request := sampleOf(login)
		b.WriteString("  - name: wrong passwords block the address\n    steps:\n")
		step(request, fmt.Sprintf("times: %d, response: { status: 401 }, want: ok", min(n, loginFailures)))
		if n > loginFailures {
			step(request, "want: refused, rule: login, retry_after: 15m")
		}
	}
	return b.String()
}

func methodOf(request string) string {
	method, _, _ := strings.Cut(request, " ")
	return method
}

var wildcards = regexp.MustCompile(`\{(\$|[^{}]*)\}`)

// sampleOf returns a request that a pattern matches.
func sampleOf(pattern string) string {
	method, target, ok := strings.Cut(pattern, " ")
	if !ok || strings.Contains(method, "/") {
		method, target = "GET", pattern
	}
	slash := max(strings.IndexByte(target, '/'), 0)
	host, path := target[:slash], target[slash:]
	open := strings.HasSuffix(path, "/")
	path = wildcards.ReplaceAllStringFunc(path, func(w string) string {
		if w == "{$}" {
			return ""
		}
		return "a"
	})
	if open {
		path += "a"
	}
	return method + " " + host + (&url.URL{Path: path}).EscapedPath()
}

// config returns the text of the configuration.
func (a *answers) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How tidegate serve runs; tidegate config -c tidegate.yaml prints every setting.
# Editors complete its words with what tidegate schema config prints.
rules: rules.yaml
listen:
  gateway: 127.0.0.1:8080 # :8080 to be reached from other machines
  admin: 127.0.0.1:9090 # health, metrics and keys, for this machine
upstreams: [%s]
`, yamlText(a.Upstream))
	proxies, jwks := given(a.Proxies), given(a.JWKS)
	if a.Per != "user" {
		jwks = ""
	}
	if proxies != "" || jwks != "" {
		b.WriteString("trust:\n")
	}
	if proxies != "" {
		var all []string
		for p := range strings.SplitSeq(proxies, ",") {
			all = append(all, yamlText(strings.TrimSpace(p)))
		}
		fmt.Fprintf(&b, "  proxies: [%s]\n", strings.Join(all, ", "))
	}
	if jwks != "" {
		fmt.Fprintf(&b, "  jwt: { jwks: %s }\n", yamlText(jwks))
	} else if a.Per == "user" {
		b.WriteString("# Until you say which keys verify tokens, users are counted by their addresses:\n")
		if proxies != "" {
			b.WriteString("#  jwt: { jwks: jwks.json }\n")
		} else {
			b.WriteString("# trust: { jwt: { jwks: jwks.json } }\n")
		}
	}
	if redis := given(a.Redis); redis != "" {
		fmt.Fprintf(&b, "store: { redis: %s } # all instances share the counters\n", yamlText(redis))
	} else {
		b.WriteString("store: memory # each instance counts by itself\n")
	}
	return b.String()
}
