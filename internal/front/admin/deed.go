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

// Results are all of them.
var Results = []string{Done, Failed, Refused}

// deed is what a write did, or tried.
type deed struct {
	action  string
	what    []any // pairs of names and values, for the logs
	reason  string
	preview bool // nothing was done
	routine bool // machines do it again and again: one entry per operator and minute is enough
}

// entryOf is the entry about it.
func entryOf(o Operator, r *http.Request, d deed) auditlog.Entry {
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

// actionOf is the action of a write that nobody looked into.
func actionOf(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/")
	return path[:min(len(path), 64)]
}

// audit appends an entry. If that fails, the entry is in the log of the process: an operator
// who cannot stop an attack because a disk is full would be worse.
func (s *server) audit(e auditlog.Entry) {
	if s.Audit == nil {
		return
	}
	if err := s.Audit.Append(e); err != nil {
		s.Log.Error("admin: an entry of the audit log is here instead", "err", err, "entry", e)
	}
}

// allowance lets so many through in a minute, so that whoever is refused cannot fill the log.
type allowance struct {
	most int

	mu      sync.Mutex
	began   time.Time // the minute; under mu
	taken   int       // in it; under mu
	skipped int       // since the last one that was let through; under mu
}

// take reports whether this one is let through, and how many before it were not.
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

// routine finds which of the writes that machines repeat have an entry: the first of each
// operator in a minute.
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
