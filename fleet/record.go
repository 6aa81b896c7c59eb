package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/chain"
)

// record is what an instance tells about itself with a heartbeat, as JSON of at most
// chain.MaxAbout bytes. Versions read each other's: a field that is missing is zero, and one
// that is not known is ignored.
type record struct {
	Name    string  `json:"name,omitempty"`
	Version string  `json:"version,omitempty"`
	Rules   string  `json:"rules,omitempty"`
	Up      seconds `json:"up"`

	Offset seconds `json:"clock,omitempty"`
	Within seconds `json:"within,omitempty"`
	Server string  `json:"clock_of,omitempty"`

	Status   string   `json:"status"`
	For      seconds  `json:"for"`
	Out      []string `json:"out,omitempty"`
	OutCount int      `json:"outs,omitempty"`

	Backlog      int64 `json:"backlog,omitempty"`
	Leases       int   `json:"leases,omitempty"`
	LeasedEvents int64 `json:"leased,omitempty"`
	Instances    int   `json:"of"`

	Lag seconds `json:"lag,omitempty"`

	Orders *int64 `json:"orders,omitempty"` // nil means it does not follow what operators order
}

// Longest texts of a record, in bytes.
const (
	maxName    = 64
	maxVersion = 32
	maxRules   = 16
	maxServer  = 48
	maxOut     = 2 // servers that are named
)

// encode returns r as JSON, shortened as much as needed.
func (r record) encode() string {
	r.trim()
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(r) != nil {
			return "" // cannot happen: there are only texts and numbers
		}
		if text := strings.TrimSpace(b.String()); len(text) <= chain.MaxAbout {
			return text
		}
		if len(r.Out) == 0 {
			return ""
		}
		r.Out = r.Out[:len(r.Out)-1]
	}
}

// readRecord reads what an instance, or anybody else who may write to Redis, has written.
func readRecord(text string) (r record, ok bool) {
	if len(text) > chain.MaxAbout || json.Unmarshal([]byte(text), &r) != nil || r.Status == "" {
		return record{}, false
	}
	r.trim()
	return r, true
}

// trim puts every field within its bounds.
func (r *record) trim() {
	r.Name, r.Version, r.Rules, r.Server = label(r.Name, maxName), label(r.Version, maxVersion), label(r.Rules, maxRules), label(r.Server, maxServer)
	if !slices.Contains([]string{OK, Partial, Degraded, Recovering}, r.Status) {
		r.Status = "unknown"
	}
	r.Out = slices.Clone(r.Out[:min(len(r.Out), maxOut)])
	for i := range r.Out {
		r.Out[i] = label(r.Out[i], maxServer)
	}
	for _, n := range []*int{&r.OutCount, &r.Leases, &r.Instances} {
		*n = min(max(*n, 0), maxCount)
	}
	for _, n := range []*int64{&r.Backlog, &r.LeasedEvents} {
		*n = min(max(*n, 0), maxEvents)
	}
	for _, s := range []*seconds{&r.Up, &r.For, &r.Offset, &r.Within, &r.Lag} {
		*s = min(max(*s, -maxSeconds), maxSeconds)
	}
	if r.Orders != nil {
		orders := min(max(*r.Orders, 0), maxEvents)
		r.Orders = &orders
	}
	r.Up, r.For, r.Within, r.Lag = max(r.Up, 0), max(r.For, 0), max(r.Within, 0), max(r.Lag, 0)
}

// Largest numbers of a record.
const (
	maxCount   = 1 << 24
	maxEvents  = 1 << 53
	maxSeconds = 100 * 365 * 24 * 3600
)

// seconds is a duration in JSON.
type seconds float64

func secondsOf(d time.Duration) seconds {
	return seconds(float64(d.Round(time.Microsecond)) / float64(time.Second))
}

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// label returns text without characters that are not printable, or that JSON would escape, and
// at most so many bytes of it.
func label(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		if !unicode.IsPrint(r) || r == '"' || r == '\\' || r == utf8.RuneError {
			r = '?'
		}
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// defaultName returns the name of this process.
func defaultName() string {
	host, _ := os.Hostname()
	pid := ":" + strconv.Itoa(os.Getpid())
	return label(cmp.Or(host, "localhost"), maxName-len(pid)) + pid
}

const modulePath = "tidegate.dev/tidegate"

// defaultVersion returns the version of this module; "" if the build does not know it.
func defaultVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}
