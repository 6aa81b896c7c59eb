package rulefile

import (
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// source reads n as one place to find a value in. name is that of the identity, which is also the key
// if the source is the word `descriptor` alone; "" if the value is for no identity.
func (d *decoder) source(n *yamltree.Node, name string) (Source, bool) {
	text, ok := d.text(n, "a source", "write where it is found, such as `jwt.sub` or `client header X-User`")
	if !ok {
		return Source{}, false
	}
	s, wrong := parseSource(text, name)
	if s.Kind == SourceNone {
		d.fail(n.Pos, wrong.message, wrong.hint)
		return Source{}, false
	}
	s.Pos = n.Pos
	return s, true
}

// mistake is a problem whose place is not known yet.
type mistake struct{ message, hint string }

// parseSource reads a source. If text is none, the kind is SourceNone and the mistake says why.
func parseSource(text, name string) (Source, mistake) {
	words := strings.Fields(text)
	s := Source{Text: strings.Join(words, " ")}
	words, wrong := s.cutSpelling(words)
	if wrong != (mistake{}) {
		return s, wrong
	}
	switch first := words[0]; {
	case first == "ip":
		wrong = s.parseIP(words[1:])
	case len(words) == 1:
		wrong = s.parseWord(first, name)
	default:
		wrong = s.parseNamed(words)
	}
	if s.Spelling != 0 && s.always() {
		wrong = mistake{diag.Quote(s.Place()) + " has one spelling already", "write " + diag.Quote(s.Place())}
	}
	if wrong != (mistake{}) {
		s.Kind = SourceNone
	}
	return s, wrong
}

func (s *Source) parseIP(bits []string) mistake {
	s.Kind, s.Bits4, s.Bits6 = SourceIP, 32, 64
	if len(bits) == 0 {
		return mistake{}
	}
	if len(bits) == 2 {
		var ok4, ok6 bool
		s.Bits4, ok4 = prefixLength(bits[0], 32)
		s.Bits6, ok6 = prefixLength(bits[1], 128)
		if ok4 && ok6 {
			return mistake{}
		}
	}
	return mistake{
		diag.Quote(s.Text) + " does not say how much of an address counts",
		"write the prefix of IPv4, up to /32, and that of IPv6, up to /128: `ip /24 /48`; plain `ip` is `ip /32 /64`",
	}
}

func prefixLength(text string, most int) (int, bool) {
	digits, ok := strings.CutPrefix(text, "/")
	if !ok || !allDigits(digits) {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && n <= most
}

// dotted are the sources whose name follows a dot.
var dotted = map[string]SourceKind{"body": SourceBody, "jwt": SourceJWT, "api_key": SourceAPIKey}

// parseWord reads a source of one word.
func (s *Source) parseWord(word, name string) mistake {
	switch word {
	case "basic.user":
		s.Kind = SourceBasicUser
		return mistake{}
	case "tls.client_cn":
		s.Kind = SourceTLSClientCN
		return mistake{}
	case "api_key":
		s.Kind = SourceAPIKey
		return mistake{}
	case "api_key.sha256":
		return mistake{"the hash of a key is not an attribute", "write `api_key`, which is the name of the key, or `api_key.NAME` for another column of the file"}
	case "descriptor":
		if name != "" {
			s.Kind, s.Arg = SourceDescriptor, name
			return mistake{}
		}
	}
	if k, ok := builtIn[word]; ok {
		s.Kind = k
		return mistake{}
	}
	first, rest, _ := strings.Cut(word, ".")
	if k, ok := dotted[first]; ok && dottedName(rest) {
		s.Kind, s.Arg = k, rest
		return mistake{}
	}
	return unknownSource(s.Place())
}

// dottedName reports whether no part of text, between its dots, is empty.
func dottedName(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if part == "" {
			return false
		}
	}
	return true
}

// named are the sources whose name follows a space.
var named = map[string]SourceKind{
	"header": SourceHeader, "client header": SourceClientHeader, "cookie": SourceCookie, "query": SourceQuery,
	"metadata": SourceMetadata, "descriptor": SourceDescriptor, "path": SourcePathWildcard, "unverified": SourceJWTUnverified,
}

// parseNamed reads a source of several words, the last of which is a name.
func (s *Source) parseNamed(words []string) mistake {
	last := len(words) - 1
	k, ok := named[strings.Join(words[:last], " ")]
	if !ok {
		return unknownSource(s.Place())
	}
	s.Kind, s.Arg = k, words[last]
	switch k {
	case SourceHeader, SourceClientHeader, SourceCookie:
		if s.Arg == "header" {
			return mistake{diag.Quote(s.Text) + " names no header", "write the name of the header: `client header X-Api-Key`"}
		}
		if !isToken(s.Arg) {
			return mistake{diag.Quote(s.Arg) + " cannot be the name of a header or cookie", "write the bare name: `client header X-Api-Key`, `cookie session`"}
		}
	case SourceMetadata:
		if strings.Trim(s.Arg, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			return mistake{diag.Quote(s.Arg) + " cannot be a key of gRPC metadata", "keys are in lower case: " + diag.Quote("metadata "+strings.ToLower(s.Arg))}
		}
	case SourcePathWildcard:
		arg, open := strings.CutPrefix(s.Arg, "{")
		arg, closed := strings.CutSuffix(arg, "}")
		arg = strings.TrimSuffix(arg, "...")
		if !open || !closed || !isIdentifier(arg) {
			return mistake{diag.Quote(s.Text) + " names no wildcard", "write the wildcard of the pattern in braces: `path {id}`"}
		}
		s.Arg = arg
	case SourceJWTUnverified:
		claim, ok := strings.CutPrefix(s.Arg, "jwt.")
		if !ok || !dottedName(claim) {
			return mistake{"only a claim can be unverified, and " + diag.Quote(s.Arg) + " is not a claim", "write `unverified jwt.sub`"}
		}
		s.Arg = claim
	}
	return mistake{}
}

// isToken reports whether text can be the name of a header or cookie.
func isToken(text string) bool {
	return text != "" && strings.Trim(text, nameLetters+"!#$%&'*+.^`|~") == ""
}

// unknownSource returns the mistake of a text that is no source, with what was probably meant.
func unknownSource(text string) mistake {
	message := diag.Quote(text) + " is not a place to find a value in"
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" .:", r) })
	if len(words) == 0 {
		words = []string{text}
	}
	first, arg := strings.ToLower(words[0]), words[len(words)-1]
	if len(words) == 1 || arg == "header" {
		arg = ""
	}
	if near := diag.Nearest(first, sourceWords); near != "" {
		first = near
	}
	if first == "client" && arg != "" && (words[1] == "cookie" || words[1] == "query") {
		first = words[1] // they are always the client's
	}
	examples := map[string]string{
		"jwt": "jwt." + or(arg, "sub"), "body": "body." + or(arg, "max_tokens"), "basic": "basic.user", "tls": "tls.client_cn",
		"header": "header " + or(arg, "X-User"), "cookie": "cookie " + or(arg, "session"), "query": "query " + or(arg, "key"),
		"client": "client header " + or(arg, "X-Api-Key"), "metadata": "metadata " + or(arg, "x-user"),
		"descriptor": "descriptor " + or(arg, "tenant"), "path": "path {" + or(strings.Trim(arg, "{}"), "id") + "}",
		"unverified": "unverified jwt." + or(arg, "sub"), "user-agent": "client header User-Agent",
		"api_key": "api_key." + or(arg, "plan"),
	}
	if e, ok := examples[first]; ok && e != text {
		return mistake{message, "did you mean " + diag.Quote(e) + "?"}
	}
	if len(words) == 1 && words[0] != first && isToken(text) {
		return mistake{message, "for a header write " + diag.Quote("client header "+text)}
	}
	return mistake{message, "write `ip`, `jwt.CLAIM`, `header NAME`, `client header NAME`, `cookie NAME`, `query NAME`, `path {NAME}`, `body.FIELD`, `api_key`, `api_key.ATTRIBUTE`, `basic.user`, `tls.client_cn`, `metadata NAME` or `descriptor NAME`"}
}

var sourceWords = []string{
	"jwt", "body", "basic", "tls", "header", "cookie", "query", "client", "metadata", "descriptor", "path", "unverified", "api_key",
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
