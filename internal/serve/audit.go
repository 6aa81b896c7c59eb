package serve

import (
	"cmp"
	"sync"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
	"tidegate.dev/tidegate/rules/source"
)

// audit is the audit log, and the rules that it knows of.
type audit struct {
	*auditlog.Log

	mu     sync.Mutex
	status func() source.Status // of the rules; nil before they are loaded; under mu
	hash   string               // of those in force; under mu
	layers map[string]string    // their revisions, by layer; under mu
}

// follow sets where the status of the rules comes from.
func (a *audit) follow(status func() source.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is := status()
	a.status, a.hash, a.layers = status, is.Hash, revisionsOf(&is)
}

// revisionsOf returns the revisions of the layers; of one on disk, the hash.
func revisionsOf(st *source.Status) map[string]string {
	all := make(map[string]string)
	for _, l := range st.Layers {
		all[l.Name] = cmp.Or(l.Revision, l.Hash)
	}
	return all
}

func (s *server) openAudit() (err error) {
	o := auditlog.Options{
		File: s.config.Admin.Audit,
		Node: s.nodeName(),
		Trouble: func(err error) {
			if err == nil {
				s.log.Warn("the audit log is written again")
				return
			}
			s.log.Error("the audit log cannot be written: its entries are in this log until it can", "err", err)
		},
	}
	if s.shared != nil {
		o.Share, o.Shared = s.board.Log, s.board.Logged
	}
	s.audit.Log, err = auditlog.Open(o)
	return err
}

// nodeName returns the name of this process for operators.
func (s *server) nodeName() string {
	return cmp.Or(s.config.Store.Redis.Instance, nodeName())
}

// auditRules records that the rules were changed, or why not. For files, it is unknown who changed
// them.
func (s *server) auditRules(err error) {
	a := &s.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	e := auditlog.Entry{Who: "(files)", Action: "rules", Result: admin.Done, What: map[string]any{"from": a.hash}}
	var is source.Status
	if a.status != nil {
		is = a.status()
	}
	if err != nil {
		e.Result, e.Error = admin.Failed, err.Error()[:min(len(err.Error()), 2000)]
	} else if a.status != nil {
		a.hash = is.Hash
		e.What["to"] = a.hash
	}
	a.nameSources(&e, &is)
	if err := a.Append(e); err != nil {
		s.log.Error("an entry of the audit log is here instead", "err", err, "entry", e)
	}
}

// nameSources adds the layers that an entry is about, with author and reason. The caller holds mu.
func (a *audit) nameSources(e *auditlog.Entry, is *source.Status) {
	var about []map[string]any
	for _, l := range is.Layers {
		edition := l.Edition
		if e.Error != "" {
			if l.Refused == nil {
				continue
			}
			edition = l.Refused.Edition
		} else if a.layers[l.Name] == cmp.Or(l.Revision, l.Hash) {
			continue
		}
		if !l.Origin {
			about = append(about, map[string]any{"name": l.Name})
			continue
		}
		e.Who, e.Reason = cmp.Or(edition.Author, "("+l.Name+")"), edition.Reason
		about = append(about, map[string]any{"name": l.Name, "revision": edition.Revision, "author": edition.Author, "reason": edition.Reason})
	}
	if len(is.Layers) > 1 || len(is.Layers) == 1 && is.Layers[0].Origin {
		e.What["layers"] = about
	}
	if e.Error == "" {
		a.layers = revisionsOf(is)
	}
}
