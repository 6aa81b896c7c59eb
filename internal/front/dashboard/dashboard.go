// Package dashboard is the page for operators: embedded files, and a stream of live data. It knows
// nothing by itself: the page uses the admin API like any other client, and the stream shows what
// [Options.Look] returns.
//
// Start with [New].
package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed files
var embedded embed.FS

// Options of [New].
type Options struct {
	// Look returns the current state; one call serves all pages, and it is only called while pages
	// are open.
	Look Look
	// Every is how often Look is called; 0 means two seconds.
	Every time.Duration
	// Pages is how many may be open at once; 0 means 100.
	Pages int
}

// Dashboard is the page. Call Close at the end.
type Dashboard struct {
	*hub
	files map[string]file
}

// file is an embedded file as it is served.
type file struct {
	body []byte
	kind string
	tag  string
}

// Prefix is the path that the files are below.
const Prefix = "/ui/"

// policy makes a page load only what is served here, run no inline scripts, and not be framed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// New returns a Dashboard.
func New(o Options) *Dashboard {
	d := &Dashboard{hub: newHub(o), files: make(map[string]file)}
	err := fs.WalkDir(embedded, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		kind := mime.TypeByExtension(path.Ext(name))
		if path.Ext(name) == ".js" { // whatever type this machine maps it to
			kind = "text/javascript; charset=utf-8"
		}
		d.files[Prefix+strings.TrimPrefix(name, "files/")] = file{body, kind, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil { // they are built in
		panic("dashboard: " + err.Error())
	}
	d.files[Prefix] = d.files[Prefix+"index.html"]
	return d
}

// ServeHTTP serves the files.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := d.files[r.URL.Path]
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The page is only read.", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}
