package httplimit

import (
	"net/http"

	"tidegate.dev/tidegate"
)

// Options says how requests are told apart and how they are answered. The zero
// value is what [Limit] and [Gate] use, and right for most servers.
type Options struct {
	// Headers is the dialect in which clients are told where they stand, or several,
	// as in Draft11 | X; the zero value is Draft11.
	Headers Dialect
	// Reset is how the X and Draft6 dialects say when nothing of a limit is
	// used any more: as seconds from now (the zero value) or as Unix time.
	Reset Reset
	// RetryJitter spreads the clients that a FixedWindow or a Quota refuses over this
	// share of the window after its end, so that they do not all come back in the same
	// second: 0.1 adds up to 6 s to the Retry-After of a minute, at random for each
	// refusal, and never more than MostRetryJitter. Every time in the headers and in
	// the body of the refusal is later by the same; Decisions stay exact. Other limits
	// have no moment for which all clients wait, and stay as they are. From 0 to 1.
	RetryJitter float64
	// ClientIP says which address is the client's. The zero value takes the
	// peer of the connection and believes no header. Limit uses it for requests
	// without a key, Gate for the attributes "ip", "addr" and "header".
	ClientIP ClientIP
	// Missing is what Limit does with a request without a key; the zero value
	// counts it by its client's address.
	Missing Missing
	// Render answers refused requests instead of the problem+json body. The
	// headers of the dialects and Retry-After are set already; it writes the
	// status, usually Status(d), and the body. It must leave the body out for
	// HEAD, as any handler.
	Render func(w http.ResponseWriter, r *http.Request, d tidegate.Decision)
	// OnRefusal may answer a request that a Gate refuses in its own way, for example by
	// keeping it for later; it then returns true. If it is nil or returns false, the refusal
	// is answered as usual.
	OnRefusal func(w http.ResponseWriter, r *http.Request, d tidegate.Decision) (answered bool)
	// OnDecision is called with every decision before it is acted on, including
	// those that the fail mode made (d.Err says why) and requests refused because
	// they have no key (d.Err is ErrMissing). It is called by many goroutines at once,
	// and the request waits for it.
	OnDecision func(r *http.Request, d tidegate.Decision)
	// Fate says, after the handler of a Gate has returned, what became of the
	// request. It is for handlers that pass requests on, as a proxy does; nil
	// means that all were served. It is called with the request that the
	// middleware was called with.
	Fate func(r *http.Request) Fate
}

// Fate is what became of an admitted request.
type Fate uint8

const (
	// Served: the handler answered. Limits that count by status look at its status.
	Served Fate = iota
	// Lost: the request may have reached the server it was for, and the answer is
	// not that server's. It stays charged, whatever the status is.
	Lost
	// Unsent: nothing of the request reached anybody. What it was charged is given
	// back.
	Unsent
)

// Missing is what happens to a request whose KeyFunc finds no key. There is
// no default by accident: a client must not escape a limit by leaving a header out.
type Missing uint8

const (
	// CountByIP counts it by its client's address, apart from all keys that a
	// KeyFunc returns: no chosen header value shares a counter with an address.
	CountByIP Missing = iota
	// Skip lets it pass uncounted. Use it when another limit holds such requests.
	Skip
	// Refuse answers 400: the request does not say who is asking.
	Refuse
)

// check panics on what can only be a mistake in the program.
func (o *Options) check() {
	if o.Headers != 0 && !o.Headers.valid() {
		panic("httplimit: Options.Headers is neither some of the dialects nor NoHeaders alone")
	}
	if !(o.RetryJitter >= 0 && o.RetryJitter <= 1) {
		panic("httplimit: Options.RetryJitter is not from 0 to 1")
	}
	if o.Reset > ResetEpoch {
		panic("httplimit: Options.Reset is neither ResetDelta nor ResetEpoch")
	}
	if o.Missing > Refuse {
		panic("httplimit: Options.Missing is none of CountByIP, Skip and Refuse")
	}
	o.ClientIP.check()
}

func (o *Options) observe(r *http.Request, d *tidegate.Decision) {
	if o.OnDecision != nil {
		o.OnDecision(r, *d)
	}
}
