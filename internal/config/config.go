// Package config is the configuration of tidegate serve: where it listens, what
// it protects, whom it trusts. The file tidegate.yaml, environment variables and
// flags all set the same settings, described once, in a table; each value in
// force remembers where it comes from. Limits are not configured here but in the
// rule file.
//
// Start with [Load].
package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"
)

// Config is what to serve, and how. A Config that [Load] returned is whole: its
// values fit their ranges and each other, and the files it names were there.
type Config struct {
	// File is the configuration file that was read; "" when there was none.
	File string
	// Rules are the layers of the rules: each a rule file, a folder of them, or the URL of a
	// source, which may have a password. None limits nothing. Default: rules.yaml beside File, or
	// in the working folder, if it is there.
	Rules []string
	// RulesSource is how rules are fetched that are not on this machine.
	RulesSource RulesSource
	// Listen says where to accept connections.
	Listen Listen
	// Upstreams are the servers that requests go to: http or https, without
	// user, query and fragment. Default: none; the caller decides what that means.
	Upstreams []*url.URL
	// Trust says which statements about the caller are trusted.
	Trust Trust
	// Store is where counters live.
	Store Store
	// TLS of the gateway.
	TLS TLS
	// Limits bound what a connection and a request may take.
	Limits Limits
	// Health is how upstreams are looked after.
	Health Health
	// KeepAlive is about connections to upstreams that no request uses.
	KeepAlive KeepAlive
	// Paths says what is done with paths that can be read in two ways.
	Paths Paths
	// Log says what is written about requests and about the process.
	Log Log
	// Check is about the HTTP check API.
	Check Check
	// RESP is about the listener that speaks the Redis protocol.
	RESP RESP
	// RLS is about the rate limit service for Envoy.
	RLS RLS
	// XDS is the control plane that sends rules for the rate limit service.
	XDS XDS
	// Usage is a path of the gateway at which callers see where they stand with their
	// limits; "" means there is none.
	Usage string
	// Defer is about requests that rules keep for later.
	Defer Defer
	// Admin is about the admin listener.
	Admin Admin
	// Slips is about what refused clients can quote.
	Slips Slips
	// Telemetry is what is told about requests beside the access log and the metrics.
	Telemetry Telemetry
	// Drain is how long requests in flight may take to end when the process
	// ends; 0 cuts them off. Default: 30s.
	Drain time.Duration

	origins map[string]origin // where settings were set, by path; a default has none
}

// Listen says where to accept connections. No two are ever the same, unless
// the system chooses the port. All but Admin may be off.
type Listen struct {
	Gateway Address // default: 127.0.0.1:8080
	Check   Address // default: off; reachable from elsewhere only with Check.TokenFile or Check.TLS.ClientCA
	RLS     Address // default: off
	RLSHTTP Address // default: off
	RESP    Address // default: off; reachable from elsewhere only with RESP.UsersFile or RESP.TLS.ClientCA
	Admin   Address // default: 127.0.0.1:9090; reachable from elsewhere only if Admin asks who that is
}

// Slips is about what refused clients get, and can quote to whoever runs the service.
type Slips struct {
	KeyFile string // with what seals slips; default: none, so that each process has a key of its own
}

// Trust says whose word is taken for who is asking.
type Trust struct {
	Proxies []netip.Prefix // of our own proxies, whose X-Forwarded-For is believed; default: none
	Unix    bool           // peers on a Unix socket are our own proxies, too; default: false
	JWT     JWT
	APIKeys APIKeys
}

// JWT is how bearer tokens are verified. With neither JWKS nor Key no token is
// believed; there are never both.
type JWT struct {
	JWKS     string        // URL or file of a JSON Web Key Set; default: none
	Refresh  time.Duration // how old the keys of a URL get; default: 10m
	Copy     string        // file that keeps the last good keys of a URL; default: none
	Key      string        // file with one public key (PEM), or with a shared secret; default: none
	Issuer   string        // that a token must have; default: any
	Audience string        // that a token must have; default: any
}

// APIKeys is how API keys are recognised. Without a File none is.
type APIKeys struct {
	From string // where a request has its key; default: client header X-Api-Key
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
	SnapshotEvery time.Duration // between two of them, 0: only at the end; default: 10s
}

// Redis is the store that gateways share. In the file, all but URL are fields of store:
// store.deadline, not store.redis.deadline.
type Redis struct {
	URL          string        // which may have a password; there is one, or there are Shards, if the store is InRedis
	Shards       []Shard       // several servers in place of the one at URL; default: none
	Was          []Shard       // the shards before their list was changed; default: none
	Region       string        // the name of this region, if there are several; default: none
	Regions      []Shard       // the other regions; default: none
	Deadline     time.Duration // by which every decision is there, whatever Redis does; default: 25ms
	Username     string        // unless the URL has one; default: none
	PasswordFile string        // file with the password, unless the URL has one; default: none
	Instance     string        // what operators call this process; default: none, which is host:pid
}

// Shard is one of several servers that counters are spread over.
type Shard struct {
	Name string
	URL  string // which may have a password; "" in Was for a shard that there is now, too
}

// TLS of the gateway: certificate and key, or neither.
type TLS struct {
	Cert       string // file with the certificate and its chain, in PEM; default: none
	Key        string // file with its private key, in PEM; default: none
	ClientCA   string // file with the authorities of client certificates, in PEM; default: none, they are not asked for
	ClientAuth string // Request or Require a client certificate; default: Request
}

// KeyPair is a certificate and its key.
type KeyPair struct {
	Cert string // file with the certificate and its chain, in PEM; default: none
	Key  string // file with its private key, in PEM; default: none
}

// The words of [TLS].
const (
	Request = "request" // a certificate, and serve clients that have none
	Require = "require" // one, and end the handshake with clients that have none
)

// Limits bound what a connection and a request may take.
type Limits struct {
	Header      int64         // bytes of a request's header; default: 64 KiB
	HeaderLines int           // of a request's header; default: 128
	URI         int64         // bytes of a request's target; default: 8 KiB
	Body        int64         // bytes of a request's body; default: 0, any
	ReadHeader  time.Duration // until the header is read; default: 10s, or Read if that is shorter
	Read        time.Duration // until the whole request is read; default: 0, any
	Write       time.Duration // from the header until the answer is written; default: 0, any
	Idle        time.Duration // between two requests of a connection; default: 2m
	Stall       time.Duration // that a client may stand still in the middle of a body, 0: any; default: 1m
	Tunnel      time.Duration // that both sides of a WebSocket or a conversation may be silent, 0: any; default: 1h
	Upstream    time.Duration // until the upstream's header is there, 0: any; default: 1m
	Connections int           // open at once, 0: any; default: what the limit of open files has room for
	Requests    int           // in flight at once; default: 0, any
}

// Health is how upstreams are looked after. Failing requests are always noticed;
// with a Path they are also asked.
type Health struct {
	Path           string        // what to GET from each upstream; default: none, they are not asked
	Every          time.Duration // default: 5s
	Timeout        time.Duration // default: 2s, or Every if that is shorter
	UnhealthyAfter int           // failures in a row; default: 3
}

// KeepAlive is about connections to upstreams that no request uses.
type KeepAlive struct {
	Idle        time.Duration // how long they are kept; 0 closes each after its answer. Default: 90s
	Connections int           // how many per upstream; default: 1024
}

// Paths says what is done with paths that can be read in two ways, so that no
// spelling of a path escapes a rule.
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

// Log says what is written about requests and about the process.
type Log struct {
	Access string     // Stdout, Stderr, Off, or a file; default: Stdout
	Format string     // JSON or Text; default: JSON
	Keys   string     // of who is refused: Hashed, Plain or Off; default: Hashed
	Level  slog.Level // of what is said about the process; default: info
}

// The words of [Log].
const (
	Stdout = "stdout"
	Stderr = "stderr"
	Off    = "off"
	JSON   = "json"
	Text   = "text"
	Hashed = "hashed" // all but addresses
	Plain  = "plain"
)

// Check is about the HTTP check API.
type Check struct {
	TokenFile string        // file with the token that it asks for; default: none
	Deadline  time.Duration // by which every question is answered; default: 250ms
	TLS       DoorTLS
}

// RESP is about the listener that speaks the Redis protocol.
type RESP struct {
	UsersFile string // file with the users that may ask, and their passwords; default: none, anybody may
	TLS       DoorTLS
}

// RLSQuota is what the quota service for Envoy assigns.
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

// DoorTLS is what a listener speaks that other servers ask: certificate and key, or neither.
type DoorTLS struct {
	KeyPair
	ClientCA string // file with the authorities of certificates that callers must have, in PEM; default: none
}
