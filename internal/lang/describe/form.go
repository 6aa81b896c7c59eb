package describe

import (
	"net/url"
	"strings"
)

// Field is a field of a form. A name may be given twice.
type Field struct{ Name, Value string }

// SetForm makes the body a form as a browser sends it. It keeps a Content-Type that was
// described, which may contradict the body.
func (r *Request) SetForm(fields []Field) {
	pairs := make([]string, len(fields))
	for i, f := range fields {
		pairs[i] = url.QueryEscape(f.Name) + "=" + url.QueryEscape(f.Value)
	}
	r.Body = strings.Join(pairs, "&")
	r.setType("application/x-www-form-urlencoded")
}

// boundary is the same every time, so that a test is.
const boundary = "tidegate-form-boundary"

// SetMultipart makes the body a form in parts, as a browser sends one with files.
func (r *Request) SetMultipart(fields []Field) {
	var b strings.Builder
	escape := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")
	for _, f := range fields {
		b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + escape.Replace(f.Name) + "\"\r\n\r\n" + f.Value + "\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	r.Body = b.String()
	r.setType("multipart/form-data; boundary=" + boundary)
}

// SetJSON says that the body is JSON, unless a Content-Type was described.
func (r *Request) SetJSON() { r.setType("application/json") }

func (r *Request) setType(kind string) {
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", kind)
	}
}
