// Package rulefile parses the rule file: it returns a tree of the text, with the
// place of every element, and all problems. It knows the language, not how a
// request is matched: package rules compiles a File.
//
// Start with [Read].
package rulefile

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// File is a rule file, or several joined by include. Every value that a problem may refer to has a
// Pos.
type File struct {
	Name     string // as it was asked for
	Pos      diag.Pos
	Files    []string   // all files of all layers, with includes and lists: the files to watch
	Layers   [][]string // the same, by layer
	Identify []Identity
	Lists    []List
	Tiers    []Tier
	Classes  []Class // the most important first
	Exempt   []Exempt
	Rules    []*Rule
	Domains  []Domain // those of Files that are in another language
	Waive    []Waiver // of all files and rules

	Shed           *Shed // for all requests; nil means none
	Respond        *Respond
	Headers        Headers
	OnStoreFailure FailMode // this and the next three are defaults, which each Rule has filled in
	OnFull         tidegate.OnFull
	Consistency    Word
	OnPartition    Word
	Instances      int // 0 means that the file does not say
	InstancesPos   diag.Pos

	byName map[string]int // indexes into Identify

	lines map[string]diag.Lines // by file: the source, for problems found later
}

// Word is a scalar as it was written.
type Word struct {
	Text string
	Pos  diag.Pos
}

// Identity is a name for an attribute of the caller, and its sources. The first source with a value
// counts.
type Identity struct {
	Name    Word
	Sources []Source
}

// SourceKind is where the value of an identity comes from.
type SourceKind uint8

const (
	SourceNone SourceKind = iota
	SourceIP              // Bits4, Bits6
	SourceMethod
	SourcePath
	SourceHost
	SourceRoute
	SourceEveryone
	SourceHeader       // Arg: name; believed from trusted peers
	SourceClientHeader // Arg: name
	SourceCookie       // Arg: name
	SourceQuery        // Arg: name
	SourcePathWildcard // Arg: name without braces
	SourceBody         // Arg: dotted field
	SourceJWT          // Arg: dotted claim; verified
	SourceJWTUnverified
	SourceBasicUser
	SourceTLSClientCN
	SourceMetadata   // Arg: gRPC metadata key
	SourceDescriptor // Arg: a key that the caller of a check API sends
	SourceAPIKey     // Arg: an attribute of the API key, or its name if "", from the file of keys
)

// Source is one place where an identity is looked for.
type Source struct {
	Kind         SourceKind
	Arg          string
	Bits4, Bits6 int      // SourceIP; 32 and 64 unless written
	Spelling     Spelling // how values are normalized
	Text         string   // as written, with the spelling in canonical order
	Pos          diag.Pos
}

// List is a named list of values; if they come from a file, it has the file's name.
type List struct {
	Name   Word
	File   string // "" when written in place
	Values []Word
	Tests  []Test // one for each of Values: a literal, a glob or a network
}

// Exempt matches requests that are exempt from all limits.
type Exempt struct {
	Pos          diag.Pos
	Match        []Pattern // empty means every request
	When, Unless []Condition
}

// Pattern is a pattern for requests.
type Pattern struct {
	Word
	Method string // "" means any
	Host   string // "" means any; lower case
	Path   string // starts with a slash
}

// Condition tests one identity; all conditions of a when must hold.
type Condition struct {
	Name Word // an identity, built in or of identify, or a descriptor key
	Any  []Test
}

// TestKind is how a value is compared.
type TestKind uint8

const (
	TestLiteral TestKind = iota
	TestGlob             // Text has * somewhere
	TestPrefix           // an IP network
	TestIn               // Text names a list
	TestAbsent
	TestPresent
)

// Test is one of the values that a condition accepts. An address is also a network: for identities
// that may be the client's address, and for lists, which are used with both kinds. For any other identity, Text
// is compared.
type Test struct {
	Kind   TestKind
	Text   string // normalized as the identity normalizes its values; for TestIn the list's name
	Prefix netip.Prefix
	Pos    diag.Pos
}

// Rule is one rule as it was written, with the defaults of the file filled in.
type Rule struct {
	Name         Word
	Pos          diag.Pos
	Match        []Pattern // empty means every request
	Per          []Word    // names; empty only for a rule that denies
	PerPos       diag.Pos
	Missing      Missing
	HasMissing   bool // the rule has `missing`
	When, Unless []Condition
	Terms        Terms    // for requests that take no branch; with tiers, those of the tier for all others
	For          []Branch // written branches, and those made for its tiers and the rows of its tables
	Tier         *TierUse // nil means none
	Known        []Finite // see Rule.Finite
	LimitsPos    diag.Pos // of its own limits, if it has any
	InsteadOf    []Word
	Count        *Count
	Block        time.Duration // 0 means not said
	BlockPos     diag.Pos
	SetAside     []SetAside
	Shed         *Shed // nil means that it sheds nothing
	Defer        *Defer
	Deny         bool
	Respond      *Respond // nil means the file's
	Mode         Mode
	Share        int // share of keys that is enforced, in hundredths of a percent; 10000 unless the file says `enforce: 25%`
	Candidate    *Limit
	ModePos      diag.Pos
	layer        int

	OnStoreFailure FailMode
	OnFull         tidegate.OnFull
	Consistency    Word // "", strict, leased, eventual, split
	Queues         bool // requests wait for their turn, in the rule itself or in a branch, even one that has ended
	Layers         Layers
	OnPartition    Word // "", continue, share
}

// Terms are what a request is held to; a branch of `for` replaces those that it names.
type Terms struct {
	Limits      *Limits
	Quota       *Quota
	Concurrency *Concurrency
	Over        *Over
	Cost        *Cost
	Queue       *Queue
}

// Limits are the limits of a rule; a request is charged to all of them or to none.
type Limits struct {
	Pos       diag.Pos
	Unlimited bool
	All       []Limit
	table     *table // nil means that they are the same for all values; removed after the rule was read
}

// Limit is one limit. Name, Scope, OnFull and Terms of Spec are not set yet. The Algorithm of a limit
// of a Rule is never Auto; that of a Tier, an [Order] or [ReadLimits] may be.
type Limit struct {
	Pos  diag.Pos
	Text string        // as written, for messages: 100/minute
	Spec tidegate.Spec // valid by itself; with From, it has the number Else
	From *From
	// Auto: the file does not name the algorithm; it follows from the number of events, or from
	// `consistency`.
	Auto     bool
	burstPos diag.Pos
}

// From means that the number of events comes from the caller.
type From struct {
	Source    Source
	Period    time.Duration
	Max, Else int64
}

// Quota is an amount per calendar period.
type Quota struct {
	Pos        diag.Pos
	Spec       tidegate.Spec
	AnchorFrom *Source // the anchor comes from the caller; without one, Spec's is used
	Status     int     // 0 means 429
}

// Concurrency is a number of slots.
type Concurrency struct {
	Pos  diag.Pos
	Spec tidegate.Spec
}

// Over is what happens above the limit; nil, or neither Soft nor Elastic, means hard.
type Over struct {
	Pos     diag.Pos
	Soft    int // percent above the limit that are admitted and marked; 0 means not soft
	Elastic *Elastic
	// MaxTime is for how long requests above the limit are admitted at a time; 0 means without end.
	MaxTime time.Duration
}

// Elastic admits more than the limit while a signal is below a bound.
type Elastic struct {
	Signal Word    // upstream_p99, upstream_inflight, cpu, load
	Below  float64 // seconds, requests, share 0 to 1, or as pushed
	UpTo   float64 // multiple of the limit
}

// Cost is what a request takes from each limit.
type Cost struct {
	Pos        diag.Pos
	Fixed      int64    // > 0: the same for every request, to be settled if Settle says so
	Reserve    []Source // otherwise: sources of the estimate; the first with a value counts
	Sum        bool     // the sum of all of Reserve counts, not the first
	Else       int64    // if none has a value
	Min, Max   int64
	Settle     string // "" means never; response.header.NAME or response.body.FIELD
	SettlePos  diag.Pos
	ReservePos diag.Pos
}

// Queue lets requests wait instead of refusing them.
type Queue struct {
	Pos     diag.Pos
	Places  int64
	MaxWait time.Duration
	// DropOldest: if the queue is full, the request that has waited longest is refused, not the new
	// one.
	DropOldest bool
}

// Defer keeps refused requests, to be sent later, or appends them to a stream that others read.
type Defer struct {
	Pos     diag.Pos
	Keep    time.Duration // 0 with a Stream
	Places  int64         // of all keys together; 0 with a Stream means any number
	PerKey  int64         // 0 with a Stream
	MaxBody int64         // bytes
	Stream  string        // "" means that requests are sent later
}

// Branch replaces terms of its rule if its conditions hold.
type Branch struct {
	Pos          diag.Pos
	When, Unless []Condition
	Terms        Terms // those that it names
	Until        time.Time
	UntilPos     diag.Pos
	Reason       string

	// Made: the branch was not written, but made for a tier or for the row of a table, within the
	// written branch at Within if that is not zero.
	Made   bool
	Within diag.Pos
	Whole  bool // Terms are complete: what they do not name does not apply
	Tier   string
	Row    []RowValue
}

// RowValue is the value that an identity must have for a row of a table.
type RowValue struct{ Name, Value string }

// Count says which responses are charged.
type Count struct {
	Pos    diag.Pos
	Status []tidegate.StatusRange
}

// Respond says how refusals are answered.
type Respond struct {
	Pos     diag.Pos
	Status  int    // 0 means the default for the kind of refusal
	Message string // "" means a sentence about the limit
	Body    string // "" means problem+json; else sent as it is, with {rule}, {limit}, {remaining}, {retry_after} replaced
	Type    string // of Body; "" means text/plain
}

// Headers says which headers tell clients about their limits.
type Headers struct {
	Pos         diag.Pos
	Dialects    []string // of draft11, draft6 and x, or none alone; empty means the front end's default
	Reset       string   // "", delta, epoch
	RetryJitter float64  // share of an aligned window, up to 1; 0 means the front end's default, negative means none
	JitterPos   diag.Pos // of retry_jitter, if it is set
}

// Missing is what happens to a request that lacks an identity that a rule counts by.
type Missing uint8

const (
	MissingIP Missing = iota
	MissingSkip
	MissingRefuse
)

// Mode says whether a rule decides.
type Mode uint8

const (
	Enforce Mode = iota
	Shadow
	Disabled
)

// FailMode is what a rule does when the store cannot answer.
type FailMode uint8

const (
	FailLocal FailMode = iota
	FailAllow
	FailDeny
)
