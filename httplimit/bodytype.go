package httplimit

import (
	"mime"
	"net/http"
	"net/textproto"
	"strings"

	"tidegate.dev/tidegate/internal/lang/formvalue"
)

// bodyKind is a way to write a body in which values are found.
type bodyKind uint8

const (
	bodyOther bodyKind = iota // nothing is found
	bodyJSON
	bodyURLEncoded
	bodyMultipart
)

// bodyType is what a request says of its body.
type bodyType struct {
	kind     bodyKind
	boundary string // of bodyMultipart
}

// bodyTypeOf reads Content-Type. What contradicts itself is bodyOther: two types, a
// parameter given twice, a charset in which the same bytes are other letters, a body that
// has to be unpacked first.
func bodyTypeOf(r *http.Request) bodyType {
	for _, line := range r.Header["Content-Encoding"] {
		if line = textproto.TrimString(line); line != "" && !strings.EqualFold(line, "identity") {
			return bodyType{}
		}
	}
	contentType := header(r, "Content-Type")
	if contentType == "application/json" { // nearly always
		return bodyType{kind: bodyJSON}
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || strings.IndexByte(contentType, '*') >= 0 { // RFC 2231, which few know
		return bodyType{}
	}
	if charset, ok := params["charset"]; ok && !formvalue.IsUTF8(charset) {
		return bodyType{}
	}
	switch {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return bodyType{kind: bodyJSON}
	case kind == "application/x-www-form-urlencoded":
		return bodyType{kind: bodyURLEncoded}
	case kind == "multipart/form-data":
		return bodyType{bodyMultipart, params["boundary"]}
	}
	return bodyType{}
}
