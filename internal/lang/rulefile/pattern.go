package rulefile

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/route"
)

// parsePattern reads [METHOD ][HOST]/path as net/http.ServeMux does. Unlike ServeMux it
// refuses patterns that no request can match. The zero mistake means that there is none. Text
// and Pos are not set.
func parsePattern(text string) (Pattern, mistake) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return Pattern{}, mistake{"a pattern cannot have control characters", "write it on one line: `POST /login`"}
	}
	var p Pattern
	rest := text
	if i := strings.Index(text, " "); i > 0 && !strings.Contains(text[:i], "/") {
		p.Method, rest = text[:i], strings.TrimLeft(text[i:], " ")
		if upper := strings.ToUpper(p.Method); upper != p.Method && slices.Contains(commonMethods, upper) {
			return p, mistake{"methods are in capitals, and " + diag.Quote(p.Method) + " never matches", "write " + diag.Quote(upper+" "+rest)}
		}
		if wrong := checkMethod(p.Method); wrong != (mistake{}) {
			return p, wrong
		}
	}
	if strings.HasPrefix(rest, "^") || strings.HasPrefix(rest, "~") {
		return p, mistake{"a pattern is not a regular expression: " + diag.Quote(rest), "write `/api/` for all below it, `/posts/{id}` for any one segment"}
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		return p, mistake{"a pattern has no scheme: " + diag.Quote(scheme+"://"), "write " + diag.Quote(strings.TrimSpace(p.Method+" "+after))}
	}
	slash := strings.Index(rest, "/")
	if slash < 0 {
		return p, noPath(p.Method, rest)
	}
	p.Host, p.Path = strings.ToLower(rest[:slash]), rest[slash:]
	if wrong := checkHost(rest[:slash], p.Path, p.Method); wrong != (mistake{}) {
		return p, wrong
	}
	if wrong := checkPath(p.Path); wrong != (mistake{}) {
		return p, wrong
	}
	return p, p.checkRoute()
}

// PatternOf returns the pattern that text is. text has been read before, so it is known to be one.
func PatternOf(text string) Pattern {
	p, _ := parsePattern(text)
	p.Text = text
	return p
}

// Route returns p for package route, with the path escaped: in a rule file it is written
// decoded.
func (p Pattern) Route() route.Pattern {
	segments := strings.Split(p.Path, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") {
			segments[i] = url.PathEscape(s)
		}
	}
	return route.Pattern{Method: p.Method, Host: p.Host, Path: strings.Join(segments, "/")}
}

// checkRoute reports what package route, which does the matching, finds wrong with p.
func (p Pattern) checkRoute() mistake {
	r := p.Route()
	_, err := route.Split(strings.TrimSpace(r.Method + " " + r.Host + r.Path))
	if err == nil {
		return mistake{}
	}
	message, hint, _ := strings.Cut(err.Error(), "; ")
	return mistake{message, or(hint, "write it as in `POST api.example.com/orders/{id}`")}
}

// noPath returns the mistake of a pattern without a slash, with what was probably meant.
func noPath(method, rest string) mistake {
	message := diag.Quote(strings.TrimSpace(method+" "+rest)) + " has no path"
	switch {
	case rest == "*":
		return mistake{message, "leave `match` out to match every request"}
	case method == "" && checkMethod(rest) == mistake{} && strings.ToUpper(rest) == rest:
		return mistake{message, "write " + diag.Quote(rest+" /") + " for every path"}
	case strings.Contains(rest, "."):
		return mistake{message, "write " + diag.Quote(strings.TrimSpace(method+" "+rest+"/")) + " for every path of the host"}
	}
	return mistake{message, "a path starts with a slash: " + diag.Quote(strings.TrimSpace(method+" /"+rest))}
}

// Methods that checkMethod knows. One that is in neither list, but close to one of commonMethods, is
// a misspelling.
var (
	commonMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}
	otherMethods  = []string{"BAN", "BIND", "COPY", "LINK", "LOCK", "MOVE", "PURGE", "QUERY", "REPORT", "SEARCH", "UNLOCK"}
)

// checkMethod returns what is wrong with a method. It accepts methods that it does not know unless they
// look like a misspelling.
func checkMethod(method string) mistake {
	upper := strings.ToUpper(method)
	isCommon := slices.Contains(commonMethods, upper)
	switch {
	case slices.Contains(commonMethods, method) || slices.Contains(otherMethods, method):
		return mistake{}
	case isCommon:
		return mistake{"methods are in capitals, and " + diag.Quote(method) + " never matches", "write " + diag.Quote(upper)}
	case strings.ContainsAny(method, ",|"):
		return mistake{"a pattern has one method, and " + diag.Quote(method) + " is several", "write a list: `match: [GET /posts, POST /posts]`"}
	case method == "*" || upper == "ANY" || upper == "ALL":
		return mistake{"no request has the method " + diag.Quote(method), "leave the method out for every method: `/posts`"}
	case strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "":
		return mistake{diag.Quote(method) + " is not a valid method", "write the method in capitals, a space, then the path: `POST /login`"}
	}
	if near := diag.Nearest(method, commonMethods); near != "" {
		return mistake{"no request has the method " + diag.Quote(method), "did you mean " + diag.Quote(near) + "?"}
	}
	return mistake{}
}

// checkHost returns what is wrong with the host of a pattern. rest is the path after it; method may
// be "".
func checkHost(host, rest, method string) mistake {
	rest, method = strings.TrimLeft(rest, " "), method+" "
	switch {
	case host == "" || host[0] == '[': // IPv6, which checkRoute reads
		return mistake{}
	case method == " " && slices.Contains(commonMethods, strings.ToUpper(host)):
		return mistake{"there is no space between method and path", "write " + diag.Quote(strings.ToUpper(host)+" "+rest)}
	case strings.Contains(host, " "):
		return mistake{"a pattern is a method, a space, and a host or path: " + diag.Quote(strings.TrimSpace(method+host+rest)) + " is more", "write a list for several: `match: [GET /posts, POST /posts]`"}
	case strings.ContainsAny(host, "*{"):
		return mistake{"hosts have no wildcards: " + diag.Quote(host), "write the host out, or test it: `when: { host: \"*.example.com\" }`"}
	case strings.Count(host, ":") > 1:
		return mistake{"an IPv6 address is written in brackets: " + diag.Quote(host), "write " + diag.Quote("\""+strings.TrimSpace(method+"["+host+"]"+rest)+"\"")}
	case strings.Contains(host, ":"):
		return mistake{"hosts are compared without their port: " + diag.Quote(host), "write " + diag.Quote(strings.TrimSpace(method+host[:strings.Index(host, ":")]+rest))}
	case strings.Trim(host, nameLetters+".") != "" || strings.HasPrefix(host, ".") || strings.HasSuffix(host, "."):
		return mistake{diag.Quote(host) + " is not a valid host", "write a path with a slash in front: " + diag.Quote(strings.TrimSpace(method+"/"+strings.Trim(host, "."))+rest)}
	case !strings.Contains(host, ".") && !strings.EqualFold(host, "localhost"):
		return mistake{diag.Quote(host) + " would be a host, since there is no slash in front", "write " + diag.Quote(strings.TrimSpace(method+"/"+host+rest)) + "; for a host of one word `when: { host: " + host + " }`"}
	}
	return mistake{}
}

// checkPath returns what is wrong with the path of a pattern.
func checkPath(p string) mistake {
	if i := strings.IndexAny(p, "?"); i >= 0 {
		return mistake{"a pattern has no query, and " + diag.Quote(p[i:]) + " never matches a path", "write " + diag.Quote(p[:i]) + ", and test the query: `identify: { key: query key }`, `when: { key: present }`"}
	}
	if strings.Contains(p, " /") {
		return mistake{"a pattern is one path, and this is more", "write a list: `match: [GET /posts, POST /posts]`"}
	}
	if i := strings.LastIndex(p, " "); i > 0 && slices.Contains(commonMethods, p[i+1:]) {
		return mistake{"the method comes first", "write " + diag.Quote(p[i+1:]+" "+strings.TrimSpace(p[:i]))}
	}
	if clean := cleanPath(p); clean != p {
		return mistake{"paths are cleaned before they are compared, so " + diag.Quote(p) + " never matches", "write " + diag.Quote(clean)}
	}
	seen := make(map[string]bool)
	segments := strings.Split(p[1:], "/")
	if len(segments) > maxSegments {
		return mistake{fmt.Sprintf("the path has more than %d segments", maxSegments), "end it in a slash where all below it is meant"}
	}
	for i, s := range segments {
		if wrong := checkSegment(s, i == len(segments)-1); wrong != (mistake{}) {
			return wrong
		}
		if name := wildcard(s); name != "" && seen[name] {
			return mistake{"two wildcards are called " + diag.Quote(name), "give one another name: " + diag.Quote("{"+name+"2}")}
		} else if name != "" {
			seen[name] = true
		}
	}
	return mistake{}
}

// maxSegments is how many segments a pattern may have; no request that a server accepts
// has more.
const maxSegments = 1000

// cleanPath removes dot segments and double slashes, and keeps a slash at the end.
func cleanPath(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// checkSegment checks that s, the text between two slashes, is a literal or a wildcard.
func checkSegment(s string, last bool) mistake {
	if !strings.ContainsAny(s, "{}") {
		return checkLiteral(s)
	}
	inside := strings.Trim(s, "{}")
	name, multi := strings.CutSuffix(inside, "...")
	switch {
	case s != "{"+inside+"}":
		return mistake{"a wildcard is a whole segment, and " + diag.Quote(s) + " is more", "write `/{name}/`, and test the value: `identify: { file: \"path {name}\" }`, `when: { file: \"*.json\" }`"}
	case inside == "$" && !last:
		return mistake{"`{$}` is the end of a path, and something follows", "put it last, as in `/posts/{$}`"}
	case inside == "$":
		return mistake{}
	case multi && !last:
		return mistake{diag.Quote(s) + " takes the rest of the path, and something follows", "put it last, or write " + diag.Quote("{"+name+"}") + " for one segment"}
	case name == "" || name == "*":
		return mistake{"a wildcard needs a name", "write `{id}`, or `{rest...}` for all that follows"}
	case !isIdentifier(name):
		return mistake{diag.Quote(name) + " cannot be the name of a wildcard", "use letters, digits and `_`, as in `{order_id}`"}
	}
	return mistake{}
}

// checkLiteral refuses wildcards as other tools write them, and escapes.
func checkLiteral(s string) mistake {
	switch {
	case s == "*" || s == "**":
		return mistake{diag.Quote(s) + " is not special in a pattern", "write `{id}` for one segment; a pattern that ends in a slash, such as `/api/`, has all below it"}
	case strings.Contains(s, "*"):
		return mistake{"`*` is not special in a pattern, and " + diag.Quote(s) + " has one", "write `{name}` for the whole segment, and test it: `identify: { file: \"path {name}\" }`, `when: { file: \"*.json\" }`"}
	case strings.HasPrefix(s, ":") && isIdentifier(s[1:]):
		return mistake{diag.Quote(s) + " is not special in a pattern", "write " + diag.Quote("{"+s[1:]+"}")}
	case strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">"):
		return mistake{diag.Quote(s) + " is not special in a pattern", "write " + diag.Quote("{"+strings.Trim(s, "<>")+"}")}
	}
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && isHex(s[i+1]) && isHex(s[i+2]) {
			return mistake{"patterns are compared with the decoded path, and " + diag.Quote(s[i:i+3]) + " never is in one", "write the character itself"}
		}
	}
	return mistake{}
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// wildcard returns the name of the wildcard that segment is; "" means that it is none.
func wildcard(segment string) string {
	if !strings.HasPrefix(segment, "{") || segment == "{$}" {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(segment, "{}"), "...")
}

// names returns the names of the wildcards of p.
func (p Pattern) names() []string {
	var all []string
	for s := range strings.SplitSeq(p.Path, "/") {
		if name := wildcard(s); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// isIdentifier reports whether text is a Go identifier, as names of wildcards have to be.
func isIdentifier(text string) bool {
	for i, r := range text {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return text != ""
}
