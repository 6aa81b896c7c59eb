package client

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
)

// DefaultMaxStop is how long a refusal stops all instances at most.
const DefaultMaxStop = time.Hour

// ProviderOptions describe somebody else's API. Name and Store are needed, and Limits or Rules.
type ProviderOptions struct {
	// Name of the API. Instances whose Providers have the same name share the counters of
	// Limits, and stops; those of Rules belong to the rules.
	Name string
	// Store has the counters: that of package fleet for several instances, that of package
	// store/memory for one.
	Store tidegate.Store
	// Limits hold every call, all of them together: rates, slots, quotas. A limit whose
	// Terms name where the true cost is found (AtEnd.Settle) is charged the Cost of the
	// call until the response tells; every other one is charged 1.
	Limits []*tidegate.Limit
	// Rules hold calls as rules hold requests, instead of Limits or beside them: a
	// rules.Set or rules.Live. Headers are believed, and a body is read if it can be
	// replayed. There is no client address.
	Rules tidegate.Matcher
	// Cost estimates a call in the units of the limits that settle; nil means 1.
	Cost func(*http.Request) int64
	// Key tells apart callers, such as accounts, that have counters and stops of their own; nil means
	// that all calls share them.
	Key func(*http.Request) string
	// MaxWait is how long a call waits for room at most; 0 means DefaultMaxWait, negative
	// that it never waits. The queue of a rule may hold it longer.
	MaxWait time.Duration
	// MaxStop is how long a refusal stops all instances at most, whatever time the API
	// names, a week at most; 0 means DefaultMaxStop.
	MaxStop time.Duration
	// OnStoreFailure is what happens to calls when the store cannot answer. The store of
	// package fleet always does, and has an option of its own.
	OnStoreFailure tidegate.FailMode
	// Base sends the calls; nil means http.DefaultTransport.
	Base http.RoundTripper
	// OnEvent is called with what happens to calls; nil means never. It may be called from many
	// goroutines at once.
	OnEvent func(*http.Request, Event)
}

// Provider keeps the calls of all instances of a program under the limits of somebody
// else's API. It is an http.RoundTripper that sends each request once, when there is room for
// it; [Provider.Transport] also retries. Use [NewProvider].
//
// Calls wait for their turn in buckets in the order in which they come; for slots and windows
// they ask again. A call whose context ends while it waits passes its turn on to the next one.
// When the API refuses a call and names a time, all instances stop until then; for some minutes
// after that, calls that are late for their turn wait for another one. Slots are held until the
// body of the response is read to its end or closed. A call that could not connect, or that a Provider below did not
// send, is given back, except for its turn in a bucket; any other stays charged, because the API may
// count it.
type Provider struct {
	o     ProviderOptions
	store tidegate.Store
	gate  *tidegate.Gate
	http  httplimit.Options
	turns punctuality
}

// NewProvider checks the options and returns a Provider.
func NewProvider(o ProviderOptions) (*Provider, error) {
	switch {
	case o.Name == "":
		return nil, errors.New("client: a Provider needs a Name, by which instances share its counters")
	case o.Store == nil:
		return nil, errors.New("client: a Provider needs a Store, such as memory.New()")
	case len(o.Limits) == 0 && o.Rules == nil:
		return nil, errors.New("client: a Provider needs Limits or Rules")
	case o.MaxStop < 0 || o.MaxStop > maxStop:
		return nil, errors.New("client: MaxStop has to be from 0 to " + maxStop.String())
	}
	for i, l := range o.Limits {
		if l == nil || l.Identity() == "" || l.Algorithm == tidegate.Deny {
			return nil, errors.New("client: a limit of a Provider is nil, was not made by tidegate.NewLimit, or is an access rule")
		}
		for _, other := range o.Limits[:i] {
			if l.Identity() == other.Identity() {
				return nil, errors.New("client: limits " + other.String() + " and " + l.String() + " share a counter; name them")
			}
		}
	}
	if _, ok := o.Store.(tidegate.LocalFallback); !ok && o.OnStoreFailure == tidegate.FailLocal {
		return nil, errors.New("client: OnStoreFailure is FailLocal, and the store cannot count locally; use that of package fleet")
	}
	p := &Provider{o: o, store: lined(o.Store)}
	p.http.ClientIP.TrustPeer = func(*http.Request) bool { return true } // the caller's own headers
	p.gate = tidegate.NewGate(matcher{p}, p.store).OnStoreFailure(o.OnStoreFailure)
	return p, nil
}

// lined returns a store in which calls wait for their turns in a line, and pass them on if they
// leave: s itself if it has lines, as the stores of package fleet have.
func lined(s tidegate.Store) tidegate.Store {
	if _, ok := s.(interface{ Waiting() int64 }); ok {
		return s
	}
	lines := queue.New(chain.Adapt(s))
	if _, ok := s.(tidegate.LocalFallback); ok {
		return localLines{lines}
	}
	return lines
}

// localLines is a store with lines that can count locally.
type localLines struct{ *queue.Store }

// LocalFallback implements tidegate.LocalFallback.
func (localLines) LocalFallback() {}

// Transport returns a new Transport that retries what the Provider sends. Each try is a call
// of its own. Pacing is left to the limits of the Provider. Other fields may be set before
// the first request.
func (p *Provider) Transport() *Transport {
	return &Transport{Base: p, PaceBelow: -1, Key: p.key, OnEvent: p.o.OnEvent}
}

// RoundTrip implements http.RoundTripper. The error is a [*RefusedError] if a limit, a stop
// or the store keeps the call from being sent within MaxWait and its deadline.
func (p *Provider) RoundTrip(req *http.Request) (*http.Response, error) {
	base := p.base()
	if req.URL == nil { // Base returns the error
		return base.RoundTrip(req)
	}
	a, err := p.enter(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	var res *http.Response
	returned := false
	defer func() {
		if !returned { // Base or OnEvent has panicked: the slot would be renewed forever
			a.end(tidegate.Outcome{})
			closeResponse(res)
		}
	}()
	if res, err = base.RoundTrip(req); err != nil {
		returned = true
		a.failed(err)
		return nil, err
	}
	p.stopIfAsked(req, res)
	a.follow(res)
	returned = true
	return res, nil
}

// closeResponse closes the body of a response that nobody gets; res may be nil.
func closeResponse(res *http.Response) {
	if res != nil && res.Body != nil {
		_ = res.Body.Close()
	}
}

// CloseIdleConnections closes those of Base, for [http.Client.CloseIdleConnections].
func (p *Provider) CloseIdleConnections() { closeIdle(p.base()) }

func (p *Provider) base() http.RoundTripper {
	if p.o.Base == nil {
		return http.DefaultTransport
	}
	return p.o.Base
}

// key returns the name of what is counted, for errors and events.
func (p *Provider) key(req *http.Request) string {
	if p.o.Key == nil {
		return p.o.Name
	}
	return p.o.Name + " " + p.o.Key(req)
}

// counter returns the key of the counters.
func (p *Provider) counter(req *http.Request) string {
	if p.o.Key == nil {
		return tidegate.Key(p.o.Name)
	}
	return tidegate.Key(p.o.Name, p.o.Key(req))
}

func (p *Provider) maxWait() time.Duration { return max(cmp.Or(p.o.MaxWait, DefaultMaxWait), 0) }

func (p *Provider) tell(req *http.Request, e Event) {
	if p.o.OnEvent != nil {
		e.Key = p.key(req)
		p.o.OnEvent(req, e)
	}
}
