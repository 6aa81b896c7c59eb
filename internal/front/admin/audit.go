package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"tidegate.dev/tidegate/internal/telemetry/auditlog"
)

// AuditPage is a page of the audit log.
type AuditPage struct {
	Entries    []auditlog.Entry `json:"entries"`              // the newest first
	Incomplete string           `json:"incomplete,omitempty"` // what may be missing, and why
}

const (
	usualEntries = 100
	mostEntries  = 1000
)

// showAudit answers what was done, by whom.
func (s *server) showAudit(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := known(q, "n", "who", "action", "result"); err != nil {
		return nil, err
	}
	n := usualEntries
	if text := q.Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostEntries {
			return nil, problemf(http.StatusBadRequest, "n has to be a number from 1 to %d, and is %q.", mostEntries, text)
		}
	}
	if q.Has("result") && !slices.Contains(Results, q.Get("result")) {
		return nil, problemf(http.StatusBadRequest, "result has to be done, failed or refused, and is %q.", q.Get("result"))
	}
	if s.Audit == nil {
		return nil, problemf(http.StatusNotFound, "There is no audit log; name a file in admin.audit.")
	}
	look := n
	if q.Has("who") || q.Has("action") || q.Has("result") {
		look = 10 * mostEntries
	}
	all, incomplete, err := s.Audit.Last(r.Context(), look)
	if err != nil {
		return nil, problemf(http.StatusServiceUnavailable, "The audit log cannot be read: %v.", err)
	}
	page := AuditPage{Entries: []auditlog.Entry{}, Incomplete: incomplete}
	for _, e := range all {
		if fits(q, "who", e.Who) && fits(q, "action", e.Action) && fits(q, "result", e.Result) && len(page.Entries) < n {
			page.Entries = append(page.Entries, e)
		}
	}
	return page, nil
}

func fits(q url.Values, name, value string) bool { return !q.Has(name) || q.Get(name) == value }

// known rejects unknown parameters.
func known(q url.Values, names ...string) error {
	for name := range q {
		if !slices.Contains(names, name) {
			return problemf(http.StatusBadRequest, "There is no parameter %q; there are %s.", name, listed(names))
		}
	}
	return nil
}
