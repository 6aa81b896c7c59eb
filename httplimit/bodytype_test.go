package httplimit

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// twins are bodies that say the same, each with its Content-Type.
func twins(email string) map[string]string {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("xyz")
	_ = w.WriteField("email", email)
	_ = w.Close()
	return map[string]string{
		"application/json":                                 `{"email":"` + email + `"}`,
		"application/x-www-form-urlencoded":                "email=" + strings.ReplaceAll(email, " ", "+"),
		"application/x-www-form-urlencoded; charset=UTF-8": "email=" + strings.ReplaceAll(email, " ", "%20"),
		"multipart/form-data; boundary=xyz":                b.String(),
		`Multipart/Form-Data; boundary="xyz"`:              b.String(),
	}
}

// A form and its JSON twin have the same value, over HTTP/1 and HTTP/2, whole or in
// chunks, and the handler gets every byte.
func TestFormsAndJSON(t *testing.T) {
	h := asks(echo, "body.email", "body.gone")
	http1, http2 := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	defer http1.Close()
	http2.EnableHTTP2 = true
	http2.StartTLS()
	defer http2.Close()
	for kind, body := range twins("Ann Lee") {
		for _, srv := range []*httptest.Server{http1, http2} {
			if got := send(t, srv, kind, strings.NewReader(body)); got.found != "Ann Lee|" || got.body != body {
				t.Errorf("%s: found %q, same body %v", kind, got.found, got.body == body)
			}
			chunks := struct{ *strings.Reader }{strings.NewReader(body)}
			if got := send(t, srv, kind, &onlyReader{chunks}); got.found != "Ann Lee|" || got.body != body {
				t.Errorf("%s in chunks: found %q, same body %v", kind, got.found, got.body == body)
			}
		}
	}
}

// onlyReader hides the length of what it reads.
type onlyReader struct{ r struct{ *strings.Reader } }

func (o *onlyReader) Read(p []byte) (int, error) { return o.r.Read(p) }

// A body whose type is another, or contradicts itself, has no values.
func TestContradictingTypes(t *testing.T) {
	all := twins("ann")
	js, form := all["application/json"], all["application/x-www-form-urlencoded"]
	parts := all["multipart/form-data; boundary=xyz"]
	f := func(body string, add func(http.Header)) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		add(r.Header)
		if got := bodyValue(r, "email"); got != "" {
			t.Errorf("%q with %v: %q", body, r.Header, got)
		}
	}
	contentType := func(lines ...string) func(http.Header) {
		return func(h http.Header) { h["Content-Type"] = lines }
	}
	f(js, contentType("application/x-www-form-urlencoded"))
	f(js, contentType("multipart/form-data; boundary=xyz"))
	f(form, contentType("application/json"))
	f(form, contentType("multipart/form-data; boundary=xyz"))
	f(parts, contentType("application/json"))
	f(parts, contentType("application/x-www-form-urlencoded"))
	for _, body := range []string{js, form, parts} {
		f(body, contentType())
		f(body, contentType("text/plain"))
		f(body, contentType("application/octet-stream"))
		f(body, contentType("multipart/mixed; boundary=xyz"))
		f(body, contentType("application/json", "application/x-www-form-urlencoded"))
		f(body, contentType("application/x-www-form-urlencoded", "multipart/form-data; boundary=xyz"))
		f(body, contentType("application/json, application/x-www-form-urlencoded"))
		f(body, contentType("application/json; charset=utf-16"))
		f(body, contentType("application/x-www-form-urlencoded; charset=ibm037"))
		f(body, contentType("multipart/form-data; boundary=xyz; charset=utf-7"))
		f(body, contentType("application/json; charset=utf-8; charset=utf-7"))
		f(body, func(h http.Header) {
			h.Set("Content-Type", "application/json")
			h["Content_type"] = []string{"application/x-www-form-urlencoded"} // one header to CGI
		})
	}
	f(parts, contentType("multipart/form-data; boundary=abc"))
	f(parts, contentType("multipart/form-data"))
	f(parts, contentType("multipart/form-data; boundary=xyz; boundary=abc"))
	f(parts, contentType("multipart/form-data; boundary*=xyz"))
	for kind, body := range all {
		f(body, func(h http.Header) { h.Set("Content-Type", kind); h.Set("Content-Encoding", "gzip") })
		f(body, func(h http.Header) { h.Set("Content-Type", kind); h["Content-Encoding"] = []string{"identity", "br"} })
		f(body+strings.Repeat(" ", maxBody), contentType(kind))
	}
}
