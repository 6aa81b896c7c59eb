package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/chain/board"
)

// RulesTopic is the topic with which instances ask each other for the rules in force.
const RulesTopic = "rules"

// InForce is what an instance reports about the rules that it applies.
type InForce struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Self    bool   `json:"self,omitempty"` // the answering instance
	Version string `json:"version,omitempty"`
	// Follows: it gets its rules from the answering instance, and reports what it applies.
	Follows bool `json:"follows,omitempty"`

	// Hash of the files: equal for equal files. For an instance that has not answered it is a
	// prefix of the hash, from its last heartbeat.
	Hash      string    `json:"hash,omitempty"`
	Since     time.Time `json:"since,omitzero"` // when they were put in force there
	Rules     int       `json:"rules"`          // how many
	Instances int       `json:"instances"`      // how many share the limits according to the rules; 0 means that they do not say
	Layers    []Layer   `json:"layers,omitempty"`

	// Unanswered says why nothing else is known; "" for an instance that has answered.
	Unanswered string `json:"unanswered,omitempty"`
	// Behind says why it does not run the newest revision of a source, or may not; empty if it
	// does.
	Behind []string `json:"behind,omitempty"`
}

// Layer is a source of the rules in force, as one instance sees it.
type Layer struct {
	Name     string        `json:"name"`
	Revision string        `json:"revision,omitempty"` // in force
	Author   string        `json:"author,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Since    time.Time     `json:"since,omitzero"`   // when it was put in force there
	Reached  time.Time     `json:"reached,omitzero"` // when the source last answered
	Error    string        `json:"error,omitempty"`  // why it does not; "" if it does
	Copy     bool          `json:"copy,omitempty"`   // it runs the last good copy
	Refused  *RefusedRules `json:"refused,omitempty"`
}

// RefusedRules is a revision that an instance could not put in force.
type RefusedRules struct {
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Message  string    `json:"message"`
}

// RulesStatus says which rules are in force on which instances.
type RulesStatus struct {
	// Current: every instance has answered, and runs the newest revision of every source.
	Current   bool      `json:"current"`
	Instances []InForce `json:"instances"`
	// Layers are the newest revisions that are in force anywhere.
	Layers []Newest `json:"layers,omitempty"`
	// Refusals are the revisions that could not be put in force, each once.
	Refusals []Refusal `json:"refusals,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// Newest is the newest revision of a layer in force, and on how many instances it is.
type Newest struct {
	Name     string    `json:"name"`
	Revision string    `json:"revision"`
	Author   string    `json:"author,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"` // on the first instance that had it
	On       int       `json:"on"`             // how many instances run it
	Of       int       `json:"of"`             // of how many that follow the layer and have answered
}

// Refusal is a revision that instances refuse, and why.
type Refusal struct {
	Layer    string    `json:"layer"`
	Revision string    `json:"revision,omitempty"`
	Message  string    `json:"message"`
	Since    time.Time `json:"since,omitzero"` // on the first of them
	On       []string  `json:"on"`
}

// Bounds in bytes of what an instance reports, so that it fits into an answer of the board even if
// every byte is escaped.
const (
	maxLayers    = 16
	maxLayerName = 256
	maxWord      = 128 // a revision, an author
	maxMessages  = 18 << 10
	maxMessage   = 2 << 10
)

// Answer returns the answer of an instance to [RulesTopic].
func (is *InForce) Answer() []byte {
	is.Bound()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // which would make one byte six
	if err := e.Encode(is); err != nil {
		return nil // there is nothing in it that cannot be encoded
	}
	return b.Bytes()
}

// Bound shortens what is too long for an answer, on all instances in the same way, and replaces
// control characters, which a terminal might interpret.
func (is *InForce) Bound() {
	is.Layers = is.Layers[:min(len(is.Layers), maxLayers)]
	message := min(maxMessage, maxMessages/(2*max(len(is.Layers), 1)))
	for _, text := range []*string{&is.ID, &is.Name, &is.Version, &is.Hash} {
		*text = shown(*text, maxLayerName)
	}
	for i := range is.Layers {
		l := &is.Layers[i]
		l.Name = shown(l.Name, maxLayerName)
		for _, text := range []*string{&l.Revision, &l.Author, &l.Reason} {
			*text = shown(*text, maxWord)
		}
		l.Error = shown(l.Error, message)
		if l.Refused != nil {
			l.Refused = &RefusedRules{shown(l.Refused.Revision, maxWord), l.Refused.Since, shown(l.Refused.Message, message)}
		}
	}
}

// shown returns text of at most that many bytes, with line breaks but without other control
// characters.
func shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\t", " "))
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// rulesStatus answers which rules are in force where.
func (s *server) rulesStatus(r *http.Request) (any, error) {
	if s.InForce == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules here, so nothing is limited.")
	}
	all := s.askInForce(r.Context())
	if s.Followers != nil {
		all = append(all, s.Followers()...)
	}
	return CombineReports(all, time.Now()), nil
}

// askInForce returns the reports of all instances, including those that have not answered.
func (s *server) askInForce(ctx context.Context) []InForce {
	own := s.InForce()
	if s.Board == nil {
		own.Self = true
		own.Bound()
		return []InForce{own}
	}
	answers, missing, _ := s.Board.Ask(ctx, RulesTopic, nil) // missing lists those without an answer
	self := own.ID
	var all []InForce
	for node, text := range answers {
		var one InForce
		if err := json.Unmarshal(text, &one); err != nil {
			missing = append(missing, board.Absent{Node: node, Why: "its answer cannot be read"})
			continue
		}
		one.ID, one.Name, one.Self = node.ID, node.Name, node.ID == self
		one.Unanswered, one.Behind = "", nil
		one.Bound()
		all = append(all, one)
	}
	for _, a := range missing {
		all = append(all, InForce{ID: a.ID, Name: a.Name, Self: a.ID == self, Unanswered: a.Why})
	}
	if len(missing) > 0 {
		s.heartbeats(ctx, all)
	}
	slices.SortFunc(all, func(a, b InForce) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// heartbeats adds what heartbeats say about instances that have not answered.
func (s *server) heartbeats(ctx context.Context, all []InForce) {
	if s.Fleet == nil {
		return
	}
	fleet, err := s.Fleet(ctx)
	if err != nil {
		return // all that is known is that they have not answered
	}
	for i := range all {
		at := slices.IndexFunc(fleet.Instances, func(one Instance) bool { return one.ID == all[i].ID })
		if all[i].Unanswered != "" && at >= 0 {
			all[i].Version, all[i].Hash = fleet.Instances[at].Version, fleet.Instances[at].Rules
		}
	}
}
