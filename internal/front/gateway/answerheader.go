package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// answerHeader is the header of a response to the client: what the gateway has set before,
// such as the request id and the headers of the limits, and what the upstream answers. It is
// the one place that decides which of the upstream's headers the client gets.
type answerHeader struct {
	header    http.Header // of the client's http.ResponseWriter
	own       [mostOwn]string
	n         int
	announced map[string]bool // trailers
}

// mostOwn is enough for the request id, all dialects of limit headers, and their mark.
const mostOwn = 12

// open records what h contains as the gateway's own.
func (a *answerHeader) open(h http.Header) {
	a.header = h
	for name := range h {
		if a.n == len(a.own) {
			return
		}
		a.own[a.n] = name
		a.n++
	}
}

// listFields are fields that the upstream may extend.
var listFields = map[string]bool{"Ratelimit": true, "Ratelimit-Policy": true}

// isOwn reports whether the gateway has set a header, so that the upstream must not send it with
// other values.
func (a *answerHeader) isOwn(name string) bool { return slices.Contains(a.own[:a.n], name) }

// sameForm reports whether two values of such a field can be in one list. Before draft 8 of the IETF,
// RateLimit was a dictionary and policies began with a number; clients ignore a field that mixes
// these with strings.
func sameForm(a, b string) bool { return strings.HasPrefix(a, `"`) == strings.HasPrefix(b, `"`) }

// take adds a header of the upstream. Its name is canonical.
func (a *answerHeader) take(name string, values []string) {
	if isHopByHop(name) {
		return
	}
	a.add(name, values)
}

// add adds a header, unless the gateway has set it and the upstream must not extend it.
func (a *answerHeader) add(name string, values []string) {
	had, ok := a.header[name]
	switch {
	case !ok:
		a.header[name] = values
	case !a.isOwn(name):
		a.header[name] = append(had, values...)
	case listFields[name]:
		a.header[name] = append(had, slices.DeleteFunc(values, func(v string) bool { return !sameForm(v, had[0]) })...)
	}
}

// takeAll adds a whole header of the upstream.
func (a *answerHeader) takeAll(h http.Header) {
	listed := listedHeaders(h)
	for name, values := range h {
		if !listed[name] {
			a.take(name, values)
		}
	}
}

// takeSwitch adds the header of a 101, with Connection and Upgrade.
func (a *answerHeader) takeSwitch(h http.Header) {
	for name, values := range h {
		a.add(name, values)
	}
}

// complete finishes the header once it has all of the upstream's fields. It removes a length that
// must not be sent, and keeps net/http from adding a type that the upstream did not set.
func (a *answerHeader) complete(status int) {
	if status == http.StatusNoContent {
		delete(a.header, "Content-Length") // HTTP/2 clients consider such an answer malformed
	}
	if _, ok := a.header["Content-Type"]; !ok {
		a.header["Content-Type"] = nil // otherwise net/http guesses it from the body
	}
}

// passesTrailer reports whether the client gets a trailer of the upstream: not if it stands for a
// header that clients act on, or for one that the gateway sets.
func (a *answerHeader) passesTrailer(name string) bool {
	return isToken(name) && !isForbiddenTrailer(name) && (!a.isOwn(name) || listFields[name])
}

// announce adds the names of the trailers to come. One that is a header as well is not
// announced: net/http would send the header again, as a trailer.
func (a *answerHeader) announce(trailer http.Header) {
	var names []string
	for name := range trailer {
		if _, isHeader := a.header[name]; isHeader || !a.passesTrailer(name) {
			continue
		}
		if a.announced == nil {
			a.announced = make(map[string]bool)
		}
		a.announced[name] = true
		names = append(names, name)
	}
	if names != nil {
		a.header["Trailer"] = []string{strings.Join(names, ", ")}
	}
}

// takeTrailers adds the trailers that came, announced or not.
func (a *answerHeader) takeTrailers(trailer http.Header) {
	for name, values := range trailer {
		if len(values) == 0 || !a.passesTrailer(name) {
			continue
		}
		if a.announced[name] {
			a.header[name] = values
		} else {
			a.header[http.TrailerPrefix+name] = values
		}
	}
}

// inform sends a 1xx response of the upstream. Afterwards the header is as before.
func (a *answerHeader) inform(w http.ResponseWriter, status int, h http.Header) {
	before := maps.Clone(a.header)
	a.takeAll(h)
	w.WriteHeader(status)
	clear(a.header)
	maps.Copy(a.header, before)
}
