// Package config is the configuration of tidegate serve: where it listens, what it protects, what
// it trusts. The file tidegate.yaml, environment variables and flags set the same settings, which
// are described once, in a table; each value remembers where it comes from. Limits are not
// configured here but in the rule file.
//
// Start with [Load].
package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"
)

// Config says what to serve, and how. A Config from [Load] is valid: its values are in their ranges
// and do not contradict each other, and the files that it names exist.
type Config struct {
	// File is the configuration file that was read; "" when there was none.
	File string
	// Rules are the layers of the rules: each a rule file, a folder of them, or the URL of a
	// source, which may contain a password. Without any, nothing is limited. Default: rules.yaml
	// beside File, or in the working folder, if it exists.
	Rules []string
	// RulesSource says how to fetch rules that are not on this machine.
	RulesSource RulesSource
	// Listen says where to accept connections.
	Listen Listen
	// Upstreams are the servers that requests go to: http or https, without user, query and
	// fragment. Default: none; the caller decides what that means.
	Upstreams []*url.URL
	// Trust says which statements about the caller are trusted.
	Trust Trust
	// Store is where counters live.
	Store Store
	// TLS of the gateway.
	TLS TLS
	// Limits bound what a connection and a request may take.
	Limits Limits
	// Health says how the health of upstreams is checked.
	Health Health
	// KeepAlive is about idle connections to upstreams.
	KeepAlive KeepAlive
	// Paths says how ambiguous paths are treated.
	Paths Paths
	// Log says what is logged about requests and about the process.
	Log Log
	// Check is about the HTTP check API.
	Check Check
	// RESP is about the listener that speaks the Redis protocol.
	RESP RESP
	// RLS is about the rate limit service for Envoy.
	RLS RLS
	// XDS is the control plane that sends rules for the rate limit service.
	XDS XDS
	// Usage is a path of the gateway at which callers see how much of their limits is used; ""
	// means that there is none.
	Usage string
	// Defer is about requests that rules keep for later.
	Defer Defer
	// Admin is about the admin listener.
	Admin Admin
	// Slips is about the slips that refused clients can quote.
	Slips Slips
	// Telemetry is about what is reported beside the access log and the metrics.
	Telemetry Telemetry
	// Drain is how long requests in flight may take to end when the process
	// ends; 0 cuts them off. Default: 30s.
	Drain time.Duration

	origins map[string]origin // where settings were set, by path; defaults are not in it
}

// Listen says where to accept connections. No two addresses are equal, unless the system chooses
// the port. All but Admin may be off.
type Listen struct {
	Gateway Address // default: 127.0.0.1:8080
	Check   Address // default: off; reachable from elsewhere only with Check.TokenFile or Check.TLS.ClientCA
	RLS     Address // default: off
	RLSHTTP Address // default: off
	RESP    Address // default: off; reachable from elsewhere only with RESP.UsersFile or RESP.TLS.ClientCA
	Admin   Address // default: 127.0.0.1:9090; reachable from other machines only if Admin authenticates operators
}

// Slips is about the slips that refused clients get, and can quote to the operators.
type Slips struct {
	KeyFile string // with the keys that encrypt slips; default: none, so that each process has its own key
}

// Trust says which statements about the caller are believed.
type Trust struct {
	Proxies []netip.Prefix // our own proxies, whose X-Forwarded-For is believed; default: none
	Unix    bool           // peers on a Unix socket are our own proxies, too; default: false
	JWT     JWT
	APIKeys APIKeys
}

// JWT says how bearer tokens are verified. Without JWKS and Key no token is valid; they are never
// both set.
type JWT struct {
	JWKS     string        // URL or file of a JSON Web Key Set; default: none
	Refresh  time.Duration // maximum age of the keys of a URL; default: 10m
	Copy     string        // file that keeps the last good keys of a URL; default: none
	Key      string        // file with one public key (PEM), or with a shared secret; default: none
	Issuer   string        // that a token must have; default: any
	Audience string        // that a token must have; default: any
}

// APIKeys says how API keys are recognised. Without a File none is.
type APIKeys struct {
	From string // where a request carries its key; default: client header X-Api-Key
	File string // file with their hashes, names and attributes; default: none
}

// Store is where counters live.
type Store struct {
	Kind   string // InMemory or InRedis; default: InRedis if there is a Redis.URL or there are Redis.Shards, else InMemory
	Memory Memory
	Redis  Redis
}

// The kinds of [Store].
const (
	InMemory = "memory"
	InRedis  = "redis"
)

// Memory is the store in the process itself.
type Memory struct {
	Max           int64         // bytes that all counters may take; default: 256 MiB
	Snapshot      string        // file that keeps the counters over a restart; default: none
	SnapshotEvery time.Duration // between two snapshots, 0: only at the end; default: 10s
}

// Redis is the store that gateways share. In the file, all fields but URL are directly below store:
// store.deadline, not store.redis.deadline.
type Redis struct {
	URL          string        // may contain a password; if the store is InRedis, either it or Shards is set
	Shards       []Shard       // several servers instead of the one at URL; default: none
	Was          []Shard       // the shards before their list was changed; default: none
	Region       string        // the name of this region, if there are several; default: none
	Regions      []Shard       // the other regions; default: none
	Deadline     time.Duration // maximum time of a decision, whatever Redis does; default: 25ms
	Username     string        // unless the URL has one; default: none
	PasswordFile string        // file with the password, unless the URL has one; default: none
	Instance     string        // name of this process for operators; default: none, which means host:pid
}

// Shard is one of several servers that counters are spread over.
type Shard struct {
	Name string
	URL  string // may contain a password; "" in Was for a shard that still exists
}

// TLS of the gateway: certificate and key, or neither.
type TLS struct {
	Cert       string // file with the certificate and its chain, in PEM; default: none
	Key        string // file with its private key, in PEM; default: none
	ClientCA   string // file with the authorities of client certificates, in PEM; default: none, no certificates are requested
	ClientAuth string // Request or Require a client certificate; default: Request
}

// KeyPair is a certificate and its key.
type KeyPair struct {
	Cert string // file with the certificate and its chain, in PEM; default: none
	Key  string // file with its private key, in PEM; default: none
}

// The words of [TLS].
const (
	Request = "request" // ask for a certificate, and also serve clients without one
	Require = "require" // end the handshake with clients without one
)

// Limits bound what a connection and a request may take.
type Limits struct {
	Header      int64         // bytes of a request's header; default: 64 KiB
	HeaderLines int           // of a request's header; default: 128
	URI         int64         // bytes of a request's target; default: 8 KiB
	Body        int64         // bytes of a request's body; default: 0, any
	ReadHeader  time.Duration // until the header is read; default: 10s, or Read if that is shorter
	Read        time.Duration // until the whole request is read; default: 0, no limit
	Write       time.Duration // from the header until the answer is written; default: 0, no limit
	Idle        time.Duration // between two requests of a connection; default: 2m
	Stall       time.Duration // without progress in the middle of a body, 0: no limit; default: 1m
	Tunnel      time.Duration // of silence on both sides of a WebSocket or a two-way stream, 0: no limit; default: 1h
	Upstream    time.Duration // until the upstream's header has arrived, 0: no limit; default: 1m
	Connections int           // open at once, 0: no limit; default: what the limit of open files allows
	Requests    int           // in flight at once; default: 0, no limit
}

// Health says how the health of upstreams is checked. Failing requests are always noticed; with a
// Path, upstreams are also probed.
type Health struct {
	Path           string        // what to GET from each upstream; default: none, no probes
	Every          time.Duration // default: 5s
	Timeout        time.Duration // default: 2s, or Every if that is shorter
	UnhealthyAfter int           // failures in a row; default: 3
}

// KeepAlive is about idle connections to upstreams.
type KeepAlive struct {
	Idle        time.Duration // how long they are kept; 0 closes each after its answer. Default: 90s
	Connections int           // how many per upstream; default: 1024
}

// Paths says how paths are treated that can be read in two ways, so that no spelling of a path
// escapes a rule.
type Paths struct {
	EncodedSlash string // Refuse or Allow; default: Refuse
	DotSegments  string // Refuse or Clean; default: Refuse
	Empty        string // segments: Refuse or Merge; default: Refuse
	Case         string // Sensitive or Insensitive; default: Sensitive
}

// The words of [Paths].
const (
	Refuse = "refuse" // answer 400
	Allow  = "allow"  // pass on as it is
	Clean  = "clean"  // resolve before rules and upstream see it
	Merge  = "merge"  // leave out before rules and upstream see it

	Sensitive   = "sensitive"   // /A is not /a
	Insensitive = "insensitive" // /A is /a to the upstreams, and so to the rules
)

// Log says what is logged about requests and about the process.
type Log struct {
	Access string     // Stdout, Stderr, Off, or a file; default: Stdout
	Format string     // JSON or Text; default: JSON
	Keys   string     // how keys of refused requests are logged: Hashed, Plain or Off; default: Hashed
	Level  slog.Level // least level of messages about the process; default: info
}

// The words of [Log].
const (
	Stdout = "stdout"
	Stderr = "stderr"
	Off    = "off"
	JSON   = "json"
	Text   = "text"
	Hashed = "hashed" // all except addresses
	Plain  = "plain"
)

// Check is about the HTTP check API.
type Check struct {
	TokenFile string        // file with the token that callers must present; default: none
	Deadline  time.Duration // maximum time of an answer; default: 250ms
	TLS       DoorTLS
}

// RESP is about the listener that speaks the Redis protocol.
type RESP struct {
	UsersFile string // file with the users and their passwords; default: none, anybody may ask
	TLS       DoorTLS
}

// RLSQuota has the times of the quota service for Envoy: how long an assignment is valid, and how
// long it may take until the proxy has it.
type RLSQuota struct {
	TTL      time.Duration // whole seconds; default: 2s
	Delivery time.Duration // at most half of TTL; default: 500ms
}

// RLS is about the rate limit service for Envoy.
type RLS struct {
	Deadline         time.Duration // by which every call is answered; default: 15ms
	MaxConnectionAge time.Duration // 0 means any; default: 24h
	MergeDomains     bool          // files may share a domain; default: false
	Shadow           bool          // no call is refused; default: false
	Headers          RLSHeaders    // default: none
	Quota            RLSQuota      // of the quota service
	DynamicMetadata  string        // OfRules, OfRequest or Off; default: OfRules
	Metrics          string        // Native or EnvoyProxy; default: Native
	Compare          string        // host:port of another service; default: none
	TLS              DoorTLS
}

// RLSHeaders are the names of response headers.
type RLSHeaders struct{ Limit, Remaining, Reset string }

// The words of [RLS].
const (
	OfRules    = "rules"
	OfRequest  = "request"
	Native     = "native"
	EnvoyProxy = "envoyproxy"
)

// DoorTLS is the TLS of a listener that other servers ask: certificate and key, or neither.
type DoorTLS struct {
	KeyPair
	ClientCA string // file with the authorities of certificates that callers must have, in PEM; default: none
}
