package rules

import "time"

// Config is what a rule file needs from its surroundings. The zero value reads
// files from disk, trusts no token and knows no signals.
type Config struct {
	// Trust says which tokens and API keys identify the caller.
	Trust Trust
	// ReadFile reads the rule file and all it names; nil reads from disk,
	// at most 16 MiB of each.
	ReadFile func(name string) ([]byte, error)
	// Glob finds the files that `include` names by a pattern; nil means
	// filepath.Glob.
	Glob func(pattern string) ([]string, error)
	// Now is the clock for `until`, for the lifetime of tokens, for how long replaced limits still
	// count, and for the pace of `shed`; nil means time.Now.
	Now func() time.Time
	// IgnoreCase is for upstreams that take paths in any case: patterns, conditions on
	// the path and what is counted by it then do so, too.
	IgnoreCase bool
	// MergeDomains: several files may have descriptors of one domain of Envoy's rate limit
	// service; otherwise that is an error. See [Set.Domains].
	MergeDomains bool
	// Signals are what `over: elastic` and `shed` look at; nil has none, so that elastic
	// limits stay at their nominal size and nothing is shed. See [Pushed].
	Signals Signals
	// OnShed is called whenever more or less is shed; nil means never. It is called while a request
	// is matched, and must not call the Set.
	OnShed func(Shedding)
}

// Trust says which tokens and API keys identify the caller.
type Trust struct {
	// JWT verifies the tokens that jwt.* is read from; nil trusts none, and what
	// comes from a token counts as missing.
	JWT *JWT
	// APIKeys recognises the keys that api_key is read from; nil knows none, and what
	// comes from a key counts as missing.
	APIKeys *APIKeys
}

// Signals give the current value of a signal such as "cpu" or "upstream_p99", in
// the unit in which the rule file compares it: seconds, requests, or a share of
// 1. They are asked for every request that an elastic rule matches, and several times a second for
// `shed`.
type Signals interface {
	Signal(name string) (value float64, ok bool)
}

// Steady is implemented by [Signals] that decide themselves whether a signal is below the threshold
// of a rule, with hysteresis: a value that fluctuates around it does not switch the limit with
// every request. An unknown signal is not below.
type Steady interface {
	Below(name string, threshold float64) bool
}

// Recent is implemented by [Signals] that know a signal over just the last few seconds. `shed` uses
// it: it adjusts every second, and older values would make it overshoot.
type Recent interface {
	Recent(name string) (value float64, ok bool)
}

// Identified is implemented by [tidegate.Values] that know the caller by the names of `identify`
// and by the built-in ones, rather than by the sources of the values. Known with an empty value
// means that it is missing. Tests of rules and explain use it, so that they need no tokens.
type Identified interface {
	Identity(name string) (value string, known bool)
}

func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}
