package admin

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/telemetry/auditlog"
)

// Audit is the audit log: an [*auditlog.Log].
type Audit interface {
	Append(auditlog.Entry) error
	Last(ctx context.Context, n int) (entries []auditlog.Entry, incomplete string, err error)
}

// The results of [auditlog.Entry].
const (
	Done    = "done"
	Failed  = "failed"
	Refused = "refused"
)

// Results are all results.
var Results = []string{Done, Failed, Refused}

// operation describes a write, done or attempted.
type operation struct {
	action  string
	what    []any // pairs of names and values, for the logs
	reason  string
	preview bool // nothing was changed
	routine bool // programs repeat it: one entry per operator and minute is enough
}

// entryOf returns the audit log entry for an operation.
func entryOf(o Operator, r *http.Request, d operation) auditlog.Entry {
	e := auditlog.Entry{Who: o.Name, Via: o.Via, Peer: r.RemoteAddr, Action: d.action, Reason: d.reason, Result: Done}
	if o.Role != Nobody {
		e.Role = o.Role.String()
	}
	if len(d.what) > 0 {
		e.What = make(map[string]any)
	}
	for i := 0; i+1 < len(d.what); i += 2 {
		if name, ok := d.what[i].(string); ok && !empty(d.what[i+1]) {
			e.What[name] = d.what[i+1]
		}
	}
	return e
}

func empty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case map[string]string:
		return len(v) == 0
	case []string:
		return len(v) == 0
	case time.Time:
		return v.IsZero()
	}
	return v == nil
}

// actionOf returns the action of a write that failed before it was examined.
func actionOf(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/")
	return path[:min(len(path), 64)]
}

// audit appends an entry. If that fails, the entry is in the process log: a full disk must not
// prevent an operator from stopping an attack.
func (s *server) audit(e auditlog.Entry) {
	if s.Audit == nil {
		return
	}
	if err := s.Audit.Append(e); err != nil {
		s.Log.Error("admin: an entry of the audit log is here instead", "err", err, "entry", e)
	}
}

// allowance allows a number of entries per minute, so that refused clients cannot fill the log.
type allowance struct {
	most int

	mu      sync.Mutex
	began   time.Time // the minute; under mu
	taken   int       // in it; under mu
	skipped int       // since the last that was allowed; under mu
}

// take reports whether an entry is allowed, and how many were skipped before it.
func (f *allowance) take() (skipped int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.began) >= time.Minute {
		f.began, f.taken = now, 0
	}
	if f.taken >= f.most {
		f.skipped++
		return 0, false
	}
	f.taken++
	skipped, f.skipped = f.skipped, 0
	return skipped, true
}

// routine decides which of the writes that programs repeat get an entry: the first of each action
// and operator in a minute.
type routine struct {
	mu   sync.Mutex
	last map[string]time.Time // by action and name; under mu
}

func (f *routine) take(action, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, now := action+" "+name, time.Now()
	if at, ok := f.last[key]; ok && now.Sub(at) < time.Minute {
		return false
	}
	if f.last == nil || len(f.last) >= maxOperators {
		f.last = make(map[string]time.Time)
	}
	f.last[key] = now
	return true
}
