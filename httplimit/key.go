package httplimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
)

// KeyFunc says who is asking: requests of the same key share a counter. When it
// finds no key it returns false, and [Options.Missing] says what happens. It is
// called by many goroutines at once.
//
// The key is used as it is, except that one longer than [tidegate.MaxKey]
// becomes tidegate.Key(key), and one that starts with a zero byte is escaped.
type KeyFunc func(r *http.Request) (key string, ok bool)

// Header takes the key from a request header; an empty one counts as missing.
// The client chooses the value: unless something before this middleware has
// verified it, a client that invents values gets a fresh counter for each, so
// limit by [IP] as well. Several lines of that name count as missing too, unless
// they say the same: there is no telling which one the handler will believe.
func Header(name string) KeyFunc {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return func(r *http.Request) (string, bool) {
		v := header(r, name)
		return v, v != ""
	}
}

// PathValue takes the key from a wildcard of the pattern that matched, such as
// "tenant" of "/{tenant}/". The middleware has to be inside the ServeMux: only
// that knows the pattern. Other routers have to hand their values to the request with
// SetPathValue; docs/frameworks.md says how. A request whose router has not done that is one
// without a key, and the first one is logged.
func PathValue(name string) KeyFunc {
	var warn sync.Once
	return func(r *http.Request) (string, bool) {
		v := r.PathValue(name)
		if v == "" && lacksPathValues(r, name) {
			warn.Do(func() {
				slog.Warn("httplimit: requests have no path value of this name: call the middleware inside the router, and let the router set the value (docs/frameworks.md)",
					"name", name, "pattern", r.Pattern)
			})
		}
		return v, v != ""
	}
}

// lacksPathValues reports whether no router has matched r yet, or the router knows the name
// but has not set its value.
func lacksPathValues(r *http.Request, name string) bool {
	return r.Pattern == "" || strings.Contains(r.Pattern, "{"+name+"}") || strings.Contains(r.Pattern, ":"+name)
}

// ContextValue takes the key from what an outer handler, such as the one that
// authenticates, put into the request's context under key. Strings, integers
// and whatever has a String method make a key; anything else, and an empty
// string, counts as missing.
func ContextValue(key any) KeyFunc {
	return func(r *http.Request) (string, bool) {
		s := text(r.Context().Value(key))
		return s, s != ""
	}
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case fmt.Stringer:
		return v.String()
	}
	switch v := reflect.ValueOf(v); {
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	}
	// A pointer printed by its address would be a fresh key per request.
	return ""
}

// limiterKey returns the key that Limit counts r by: see Front.Key.
func (o *Options) limiterKey(r *http.Request, find KeyFunc) (key string, counted bool, err error) {
	key, ok := find(r)
	switch {
	case ok:
		return foundKey(key), true, nil
	case o.Missing == Skip:
		return "", false, nil
	case o.Missing == Refuse:
		return "", false, ErrMissing
	}
	return addressKey(o.ClientIP.key(r)), true, nil
}

// foundKey returns the key of a limiter for a value that was found in the request. Keys are told
// apart by their first byte and length: as returned by a KeyFunc (at most MaxKey bytes, not starting with a zero byte),
// escaped ("\x00k", at most MaxKey), an address ("\x00i"), or hashed (longer
// than MaxKey). So no client can choose a value that lands on another's counter.
func foundKey(key string) string {
	if len(key) > 0 && key[0] == 0 {
		key = "\x00k" + key
	}
	if len(key) > tidegate.MaxKey {
		return tidegate.Key(key)
	}
	return key
}

func addressKey(ip string) string { return "\x00i" + ip }
