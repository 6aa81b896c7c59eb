package tidegate

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// ticketText is what the text of a ticket begins with. What follows is JSON, in base64.
const ticketText = "tt1_"

// maxTicket bounds the length of a text. Tickets of real rule files are much shorter.
const maxTicket = 64 << 10

var errTicket = errors.New("tidegate: the ticket is garbled")

// ticketParts are a ticket as it is written.
type ticketParts struct {
	At       int64       `json:"t"`
	Wait     int64       `json:"w,omitempty"`
	Sole     bool        `json:"o,omitempty"`
	Handle   Handle      `json:"h"`
	Instance uint64      `json:"i,omitempty"`
	Origin   Origin      `json:"g,omitempty"`
	Place    uint16      `json:"p,omitempty"`
	Apart    *Apart      `json:"a,omitempty"`
	Raw      []rawLocal  `json:"u,omitempty"` // the entries of Apart.Local whose names are not UTF-8, because of the keys in them
	Slots    []checkPart `json:"s,omitempty"`
	Recorded []checkPart `json:"r,omitempty"`
	Others   []checkPart `json:"c,omitempty"`
	Settled  bool        `json:"d,omitempty"`
}

// rawLocal is an entry of Apart.Local.
type rawLocal struct {
	Name  []byte `json:"k"`
	Later int64  `json:"t"`
}

func rawLocals(a *Apart) (all []rawLocal) {
	if a == nil {
		return nil
	}
	for name, later := range a.Local {
		if !utf8.ValidString(name) {
			all = append(all, rawLocal{[]byte(name), later})
		}
	}
	return all
}

type checkPart struct {
	Key      []byte        `json:"k"`
	Cost     int64         `json:"n"`
	Estimate bool          `json:"e,omitempty"`
	Advisory bool          `json:"a,omitempty"`
	Limit    Spec          `json:"l"`
	Counts   []StatusRange `json:"c,omitempty"`
	Settle   string        `json:"s,omitempty"`
	Block    time.Duration `json:"b,omitempty"`
	Rule     string        `json:"r,omitempty"`
	Shared   Consistency   `json:"y,omitempty"`
	Floor    int64         `json:"f,omitempty"`
	MaxOver  time.Duration `json:"o,omitempty"`
	// Fail is the FailMode of the limit's terms: by it a fallback knows whether it has counted the
	// check itself.
	Fail FailMode `json:"m,omitempty"`
}

// MarshalText implements [encoding.TextMarshaler]. The text is some hundred letters, digits,
// "-" and "_". It contains the keys, which anybody can decode.
func (t *Ticket) MarshalText() ([]byte, error) {
	r := &t.taken.receipt
	raw, err := json.Marshal(ticketParts{
		At: r.At, Wait: int64(t.taken.wait), Sole: t.taken.oneBucket,
		Handle: r.Handle, Instance: r.Instance, Origin: r.Origin, Place: r.Place, Apart: r.Apart, Raw: rawLocals(r.Apart),
		Slots: writeChecks(t.slots), Recorded: writeChecks(t.recorded), Others: writeChecks(t.others), Settled: t.settled,
	})
	if err != nil {
		return nil, err
	}
	return receiptCode.AppendEncode([]byte(ticketText), raw), nil
}

func writeChecks(checks []Check) (parts []checkPart) {
	for i := range checks {
		c := &checks[i]
		p := checkPart{Key: []byte(c.Key), Cost: c.Cost, Estimate: c.Estimate, Advisory: c.Advisory, Limit: c.Limit.Spec, Floor: c.Floor}
		if terms := c.Limit.Terms; terms != nil {
			p.Rule, p.Counts, p.Settle, p.Shared = terms.Rule, terms.AtEnd.Counts, terms.AtEnd.Settle, terms.Handling.Consistency
			p.MaxOver, p.Fail = terms.MaxOver, terms.Handling.OnStoreFailure
			if terms.AtEnd.Block != nil {
				p.Block = terms.AtEnd.Block.Period
			}
		}
		p.Limit.Terms = nil
		parts = append(parts, p)
	}
	return parts
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It returns an error, and leaves t
// alone, for what MarshalText never wrote.
func (t *Ticket) UnmarshalText(text []byte) error {
	if len(text) < len(ticketText) || string(text[:len(ticketText)]) != ticketText {
		return fmt.Errorf("tidegate: the text is not a ticket that this version knows: it does not begin with %q", ticketText)
	}
	if len(text) > maxTicket {
		return errTicket
	}
	raw, err := receiptCode.AppendDecode(nil, text[len(ticketText):])
	if err != nil {
		return errTicket
	}
	var p ticketParts
	if json.Unmarshal(raw, &p) != nil || int(p.Origin) >= len(originNames) {
		return errTicket
	}
	for _, one := range p.Raw {
		if p.Apart == nil || p.Apart.Local == nil {
			return errTicket
		}
		p.Apart.Local[string(one.Name)] = one.Later
	}
	got := Ticket{taken: taken{
		receipt: Receipt{At: p.At, Handle: p.Handle, Instance: p.Instance, Origin: p.Origin, Place: p.Place, Apart: p.Apart},
		wait:    time.Duration(p.Wait), oneBucket: p.Sole,
	}, settled: p.Settled}
	for _, list := range []struct {
		parts []checkPart
		to    *[]Check
		slots bool
	}{{p.Slots, &got.slots, true}, {p.Recorded, &got.recorded, false}, {p.Others, &got.others, false}} {
		for i := range list.parts {
			c, err := list.parts[i].check(list.slots)
			if err != nil {
				return errTicket
			}
			*list.to = append(*list.to, c)
		}
	}
	if len(got.slots)+len(got.recorded)+len(got.others) == 0 {
		return errTicket
	}
	*t = got
	return nil
}

func (p *checkPart) check(slot bool) (Check, error) {
	spec := p.Limit
	if slot != (spec.Algorithm == Concurrency) || spec.Algorithm == Deny || p.Cost < 0 || p.Floor < 0 || p.Shared > Eventual || p.Fail > FailLocal {
		return Check{}, errTicket
	}
	terms := &Terms{Rule: p.Rule, AtEnd: AtEnd{Counts: p.Counts, Settle: p.Settle}, Handling: Handling{Consistency: p.Shared, OnStoreFailure: p.Fail}, MaxOver: p.MaxOver}
	if p.Block != 0 {
		block, err := NewLimit(Spec{Name: spec.Name, Scope: spec.Scope, Events: 1, Period: p.Block, Algorithm: FixedWindow})
		if err != nil {
			return Check{}, err
		}
		terms.AtEnd.Block = block // it is never charged; with it the limit has a Limit.Settled
	}
	spec.Terms = terms
	l, err := NewLimit(spec)
	if err != nil {
		return Check{}, err
	}
	return Check{Key: string(p.Key), Limit: l, Cost: p.Cost, Floor: p.Floor, Estimate: p.Estimate, Advisory: p.Advisory}, nil
}
