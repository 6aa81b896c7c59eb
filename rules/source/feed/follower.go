package feed

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Headers in which a follower says who it is and what it applies.
const (
	nodeHeader     = "Tidegate-Node"
	versionHeader  = "Tidegate-Version"
	hashHeader     = "Tidegate-Rules-Hash"
	revisionHeader = "Tidegate-Rules-Revision"
	sinceHeader    = "Tidegate-Rules-Since"
	refusedHeader  = "Tidegate-Rules-Refused"
	errorHeader    = "Tidegate-Rules-Error"
	countHeader    = "Tidegate-Rules-Count"
	sharingHeader  = "Tidegate-Rules-Instances"
)

// Report is what a follower says about itself.
type Report struct {
	Node     string    `json:"node"`               // its name
	Version  string    `json:"version,omitempty"`  // of Tidegate
	Hash     string    `json:"hash,omitempty"`     // of the rules that it applies
	Revision string    `json:"revision,omitempty"` // of these, as the feed calls it
	Since    time.Time `json:"since,omitzero"`     // when it began to apply them
	Refused  string    `json:"refused,omitempty"`  // the revision that it rejects; "" if none
	Error    string    `json:"error,omitempty"`    // why it rejects it
	// Rules is the number of rules, and Instances how many instances share the limits according to
	// them.
	Rules     int `json:"rules,omitempty"`
	Instances int `json:"instances,omitempty"`
}

// Header returns the headers that a follower sends.
func (r *Report) Header() http.Header {
	h := make(http.Header)
	for _, field := range r.fields() {
		if text := fitHeader(*field.text); text != "" {
			h.Set(field.name, text)
		}
	}
	if !r.Since.IsZero() {
		h.Set(sinceHeader, r.Since.UTC().Format(time.RFC3339))
	}
	if r.Hash != "" {
		h.Set(countHeader, strconv.Itoa(r.Rules))
		h.Set(sharingHeader, strconv.Itoa(r.Instances))
	}
	return h
}

type reportField struct {
	name string
	text *string
}

func (r *Report) fields() []reportField {
	return []reportField{
		{nodeHeader, &r.Node},
		{versionHeader, &r.Version},
		{hashHeader, &r.Hash},
		{revisionHeader, &r.Revision},
		{refusedHeader, &r.Refused},
		{errorHeader, &r.Error},
	}
}

// maxText is how much of a header is used.
const maxText = 500

// fitHeader turns text into a line that is valid in a header.
func fitHeader(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c == utf8.RuneError:
			return '?'
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxText {
		return text
	}
	cut := 0
	for i := range text {
		if i > maxText-len("…") {
			break
		}
		cut = i
	}
	return text[:cut] + "…"
}

// reportOf reads the headers of a follower; Node is "" if it does not say who it is.
func reportOf(r *http.Request) (is Report) {
	for _, field := range is.fields() {
		*field.text = fitHeader(r.Header.Get(field.name))
	}
	is.Since, _ = time.Parse(time.RFC3339, r.Header.Get(sinceHeader)) // zero if it does not say
	for name, to := range map[string]*int{countHeader: &is.Rules, sharingHeader: &is.Instances} {
		if n, err := strconv.ParseUint(r.Header.Get(name), 10, 31); err == nil {
			*to = int(n)
		}
	}
	return is
}

// Follower is a follower of a feed.
type Follower struct {
	Report
	Address string    `json:"address"` // from which it asks
	Seen    time.Time `json:"seen"`    // when it last asked
	Waiting bool      `json:"waiting"` // whether it is waiting for other rules now
	Behind  bool      `json:"behind"`  // whether it applies another revision than the served one
}

const (
	maxFollowers = 4096
	// forgetAfter is how long a follower is listed after its last request.
	forgetAfter = 10 * time.Minute
)

// followers has the followers, by name.
type followers map[string]*listed

type listed struct {
	Follower
	inFlight int // requests in progress
}

// begin records that a request of a follower begins. The caller has to call end when it is over, if it
// is counted: there may be no room in the list.
func (f *Feed) begin(who Report, address string) (counted bool) {
	if who.Node == "" {
		return false
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.followers[who.Node]
	if is == nil {
		if !f.followers.room(now) {
			return false
		}
		is = new(listed)
		f.followers[who.Node] = is
	}
	is.inFlight++
	is.Report, is.Address, is.Seen = who, address, now // the latest report counts
	return true
}

// end records that a counted request of a follower ends. The follower is still listed: it was asking.
func (f *Feed) end(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.followers[node]
	is.inFlight--
	is.Seen = time.Now()
}

// room removes absent followers if the list is full.
func (r followers) room(now time.Time) bool {
	if len(r) >= maxFollowers {
		r.forget(now)
	}
	return len(r) < maxFollowers
}

func (r followers) forget(now time.Time) {
	for name, is := range r {
		if is.inFlight == 0 && now.Sub(is.Seen) > forgetAfter {
			delete(r, name)
		}
	}
}

// Followers lists the followers by name: those that are waiting, and those that asked in the last
// ten minutes.
func (f *Feed) Followers() []Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers.forget(time.Now())
	all := make([]Follower, 0, len(f.followers))
	for _, is := range f.followers {
		one := is.Follower
		one.Waiting = is.inFlight > 0
		one.Behind = f.now != nil && one.Revision != f.now.revision
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Follower) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
