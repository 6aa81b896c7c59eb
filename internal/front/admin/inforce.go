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

// RulesTopic is the question about the rules in force that instances put to each other.
const RulesTopic = "rules"

// InForce is what an instance says about the rules that it applies.
type InForce struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Self    bool   `json:"self,omitempty"` // it is the one that answers
	Version string `json:"version,omitempty"`
	// Follows: it gets its rules from the one that answers, and says what it applies.
	Follows bool `json:"follows,omitempty"`

	// Hash of the files: the same where they are the same. Of an instance that has not
	// answered it is what its last heartbeat said, which is how the hash begins.
	Hash      string    `json:"hash,omitempty"`
	Since     time.Time `json:"since,omitzero"` // when they were put in force there
	Rules     int       `json:"rules"`          // how many
	Instances int       `json:"instances"`      // as they say how many share the limits; 0 means they do not
	Layers    []Layer   `json:"layers,omitempty"`

	// Unanswered is why nothing else is known; "" for an instance that has answered.
	Unanswered string `json:"unanswered,omitempty"`
	// Behind says why it does not run the newest revision of a source, or may not; there is
	// nothing in it if it does.
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
	Copy     bool          `json:"copy,omitempty"`   // it runs the copy on its disk
	Refused  *RefusedRules `json:"refused,omitempty"`
}

// RefusedRules is what a source has and an instance cannot put in force.
type RefusedRules struct {
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Message  string    `json:"message"`
}

// RulesStatus is which rules are in force on which instance of a fleet.
type RulesStatus struct {
	// Current: every instance has answered, and runs the newest revision of every source.
	Current   bool      `json:"current"`
	Instances []InForce `json:"instances"`
	// Layers are the newest revisions that are in force anywhere.
	Layers []Newest `json:"layers,omitempty"`
	// Refusals are what cannot be put in force, each once.
	Refusals []Refusal `json:"refusals,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// Newest is the newest revision of a layer that is in force, and where.
type Newest struct {
	Name     string    `json:"name"`
	Revision string    `json:"revision"`
	Author   string    `json:"author,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"` // on the first instance
	On       int       `json:"on"`             // so many instances
	Of       int       `json:"of"`             // that follow the layer and have answered
}

// Refusal is what instances refuse, and why.
type Refusal struct {
	Layer    string    `json:"layer"`
	Revision string    `json:"revision,omitempty"`
	Message  string    `json:"message"`
	Since    time.Time `json:"since,omitzero"` // on the first of them
	On       []string  `json:"on"`
}

// Bounds of what an instance says about its rules in bytes, so that it fits an answer of the
// board even if every byte is escaped.
const (
	maxLayers    = 16
	maxLayerName = 256
	maxWord      = 128 // a revision, an author
	maxMessages  = 18 << 10
	maxMessage   = 2 << 10
)

// Answer returns what an instance answers to [RulesTopic].
func (is *InForce) Answer() []byte {
	is.Bound()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // which makes six bytes of one
	if err := e.Encode(is); err != nil {
		return nil // there is nothing in it that cannot be encoded
	}
	return b.Bytes()
}

// Bound cuts what is too long for an answer, everywhere in the same way, and replaces what a
// terminal might take for commands.
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

// shown returns text in at most so many bytes, with line breaks and without other controls.
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
	return Judge(all, time.Now()), nil
}

// askInForce returns what every instance says, also those that have not answered.
func (s *server) askInForce(ctx context.Context) []InForce {
	own := s.InForce()
	if s.Board == nil {
		own.Self = true
		own.Bound()
		return []InForce{own}
	}
	answers, missing, _ := s.Board.Ask(ctx, RulesTopic, nil) // who is missing says it as well
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

// heartbeats completes what is known of instances that have not answered.
func (s *server) heartbeats(ctx context.Context, all []InForce) {
	if s.Fleet == nil {
		return
	}
	fleet, err := s.Fleet(ctx)
	if err != nil {
		return // that they have not answered is what there is to say
	}
	for i := range all {
		at := slices.IndexFunc(fleet.Instances, func(one Instance) bool { return one.ID == all[i].ID })
		if all[i].Unanswered != "" && at >= 0 {
			all[i].Version, all[i].Hash = fleet.Instances[at].Version, fleet.Instances[at].Rules
		}
	}
}
