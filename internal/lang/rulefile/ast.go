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

// File is a rule file, or several joined by include. Every value that a problem
// may be told about has a Pos.
type File struct {
	Name     string // as it was asked for
	Pos      diag.Pos
	Files    []string   // all files read, included ones and lists too: what to watch
	Layers   [][]string // the same, by layer
	Identify []Identity
	Lists    []List
	Tiers    []Tier
	Classes  []Class // the most important first
	Exempt   []Exempt
	Rules    []*Rule
	Domains  []Domain // files of another language among these
	Waive    []Waiver // of all files and rules

	Shed           *Shed // of all requests; nil means that none are
	Respond        *Respond
	Headers        Headers
	OnStoreFailure FailMode // of defaults; rules have it filled in
	OnFull         tidegate.OnFull
	Consistency    Word
	OnPartition    Word
	Instances      int // 0 means not said
	InstancesPos   diag.Pos

	byName map[string]int // where an identity is in Identify

	lines map[string]diag.Lines // by file: the source, for problems found later
}

// Word is a scalar as it was written.
type Word struct {
	Text string
	Pos  diag.Pos
}

// Identity is a name of who is asking, and where it is found. Of several
// sources the first that has a value is taken.
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
	SourceAPIKey     // Arg: an attribute of the API key, "" for its name; looked up
)

// Source is one place to find an identity in.
type Source struct {
	Kind         SourceKind
	Arg          string
	Bits4, Bits6 int      // SourceIP; 32 and 64 unless written
	Spelling     Spelling // what is done to the value
	Text         string   // as written, words of the spelling in one order
	Pos          diag.Pos
}

// List is a named list of values; those read from a file keep its name.
type List struct {
	Name   Word
	File   string // "" when written in place
	Values []Word
	Tests  []Test // what each of Values lets through: a literal, a glob or a network
}

// Exempt is a request that no limit touches.
type Exempt struct {
	Pos          diag.Pos
	Match        []Pattern // empty means every request
	When, Unless []Condition
}

// Pattern is what a request must look like.
type Pattern struct {
	Word
	Method string // "" means any
	Host   string // "" means any; lower case
	Path   string // starts with a slash
}

// Condition is about one identity; those of a when are all to hold.
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

// Test is one of the values that a condition lets through. An address is a
// network of its own where the identity is one, and in every list, which serves
// both kinds: for any other identity Text is what to compare with.
type Test struct {
	Kind   TestKind
	Text   string // as written; for TestIn the list's name
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
	MissingSaid  bool
	When, Unless []Condition
	Terms        Terms    // of requests that no branch holds for; of the tier of all others, where there are tiers
	For          []Branch // those written, and those that stand for its tiers and the rows of its tables
	Tier         *TierUse // nil means none
	Known        []Finite // see Rule.Finite
	LimitsPos    diag.Pos // of its own limits, if it says any
	InsteadOf    []Word
	Count        *Count
	Block        time.Duration // 0 means not said
	BlockPos     diag.Pos
	SetAside     []SetAside
	Shed         *Shed // nil means none are shed
	Defer        *Defer
	Deny         bool
	Respond      *Respond // nil means the file's
	Mode         Mode
	Share        int // of keys that are enforced, in hundredths of a percent; 10000 unless `enforce: 25%` is said
	Candidate    *Limit
	ModePos      diag.Pos
	layer        int

	OnStoreFailure FailMode
	OnFull         tidegate.OnFull
	Consistency    Word // "", strict, leased, eventual, split
	Queues         bool // requests wait for their turn, in the rule itself or in a branch
	Layers         Layers
	OnPartition    Word // "", continue, share
}

// Terms are what a request is held to; a branch of for replaces those it names.
type Terms struct {
	Limits      *Limits
	Quota       *Quota
	Concurrency *Concurrency
	Over        *Over
	Cost        *Cost
	Queue       *Queue
}

// Limits are the limits of a rule, charged together or not at all.
type Limits struct {
	Pos       diag.Pos
	Unlimited bool
	All       []Limit
	table     *table // nil means the same for all values; gone once the rule is read
}

// Limit is one limit. Name, Scope, OnFull and Terms of Spec are still empty; its
// Algorithm is never Auto.
type Limit struct {
	Pos  diag.Pos
	Text string        // as written, for messages: 100/minute
	Spec tidegate.Spec // valid by itself; for From, that of Else
	From *From
	// Auto: the algorithm is not written; the number of events, or `consistency`, chose it.
	Auto     bool
	burstPos diag.Pos
}

// From takes the number of events from who is asking.
type From struct {
	Source    Source
	Period    time.Duration
	Max, Else int64
}

// Quota is an amount per calendar period.
type Quota struct {
	Pos        diag.Pos
	Spec       tidegate.Spec
	AnchorFrom *Source // the anchor comes from who is asking; Spec's is used when it does not
	Status     int     // 0 means 429
}

// Concurrency is so many at a time.
type Concurrency struct {
	Pos  diag.Pos
	Spec tidegate.Spec
}

// Over is what happens above the limit; nil or neither is hard.
type Over struct {
	Pos     diag.Pos
	Soft    int // percent above the limit that is admitted and marked; 0 means not soft
	Elastic *Elastic
	// MaxTime is how long what is Soft is admitted at a time; 0 means always.
	MaxTime time.Duration
}

// Elastic lets more through while a signal has room.
type Elastic struct {
	Signal Word    // upstream_p99, upstream_inflight, cpu, load
	Below  float64 // seconds, requests, share 0 to 1, or as pushed
	UpTo   float64 // times the limit
}

// Cost is what a request takes from each limit.
type Cost struct {
	Pos        diag.Pos
	Fixed      int64    // > 0: the same for every request, to be settled if Settle says so
	Reserve    []Source // otherwise: where the estimate comes from, the first that has one
	Sum        bool     // all of Reserve together, instead of the first
	Else       int64    // when none has one
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
	// DropOldest: if the line is full, the request that waits longest is refused, not the new one.
	DropOldest bool
}

// Defer keeps what does not fit, to be replayed later, or appends it to a stream that others read.
type Defer struct {
	Pos     diag.Pos
	Keep    time.Duration // 0 with a Stream
	Places  int64         // of all keys together; 0 with a Stream means any number
	PerKey  int64         // 0 with a Stream
	MaxBody int64         // bytes
	Stream  string        // "" means requests are replayed
}

// Branch replaces terms of its rule where its conditions hold.
type Branch struct {
	Pos          diag.Pos
	When, Unless []Condition
	Terms        Terms // what it names
	Until        time.Time
	UntilPos     diag.Pos
	Reason       string

	// Made: nobody wrote it as a branch. It stands for a tier or for the row of a table,
	// within the branch at Within if that is not zero.
	Made   bool
	Within diag.Pos
	Whole  bool // Terms are all there is, and what they do not name does not hold
	Tier   string
	Row    []RowValue
}

// RowValue is what an identity must be for a row of a table.
type RowValue struct{ Name, Value string }

// Count says which responses are charged.
type Count struct {
	Pos    diag.Pos
	Status []tidegate.StatusRange
}

// Respond is how a refusal is answered.
type Respond struct {
	Pos     diag.Pos
	Status  int    // 0 means as the kind of refusal has it
	Message string // "" means a sentence about the limit
	Body    string // "" means problem+json; else sent as it is but for {rule}, {limit}, {remaining}, {retry_after}
	Type    string // of Body; "" means text/plain
}

// Headers is how clients are told where they stand.
type Headers struct {
	Pos         diag.Pos
	Dialects    []string // of draft11, draft6 and x, or none alone; empty means the front end's
	Reset       string   // "", delta, epoch
	RetryJitter float64  // share of an aligned window, up to 1; 0 means the front end's, negative means none
	JitterPos   diag.Pos // of retry_jitter, where it is said
}

// Missing is what happens to a request without the identity a rule counts by.
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

// FailMode is what a rule answers when the store cannot.
type FailMode uint8

const (
	FailLocal FailMode = iota
	FailAllow
	FailDeny
)
