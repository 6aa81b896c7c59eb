package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/rules/source/xds"
)

// plane is the control plane that sends rules to the rate limit service. The zero value means that
// there is none.
type plane struct {
	*xds.Watcher
	joined atomic.Pointer[joined]
}

// joined is the result of joining the set of files with that of the control plane.
type joined struct{ files, plane, both *envoy.Set }

// upgradeWait is how long a successor waits for rules; its predecessor waits 30 seconds for it.
const upgradeWait = 20 * time.Second

// followPlane starts to follow the control plane, and waits for its first rules.
func (s *server) followPlane(ctx context.Context) error {
	x := s.config.XDS
	if x.Address == "" || !s.config.Listen.RLS.Open() {
		return nil
	}
	follows := make(chan struct{}) // closed when s.plane is complete
	o := xds.Options{
		Address: x.Address, NodeID: x.NodeID, MaxMessage: int(x.MaxMessage), Version: s.version, Log: s.log,
		Rules:  envoy.Options{MergeDomains: s.config.RLS.MergeDomains},
		Accept: s.notInFiles,
		OnChange: func(_, _ *envoy.Set) {
			<-follows
			if s.rules != nil {
				s.showRules(s.rules.live.Set())
			} else {
				s.showRules(nil)
			}
			if s.shared != nil { // refused keys may now be admitted
				s.shared.Forget()
			}
		},
	}
	for _, pair := range x.Metadata {
		if o.Metadata == nil {
			o.Metadata = make(map[string]string)
		}
		key, value, _ := strings.Cut(pair, "=")
		o.Metadata[key] = value
	}
	if t := x.TLS; t.CA != "" {
		o.TLS = &xds.TLS{CA: t.CA, Cert: t.Cert, Key: t.Key, Name: t.Name}
		if t.CA == config.SystemCA {
			o.TLS.CA = ""
		}
	}
	s.plane.Watcher = xds.Watch(context.Background(), o)
	close(follows)
	s.metrics.WatchPlane(s.plane.stats)
	wait := x.Wait
	if s.heir.Follows() {
		wait = upgradeWait
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := s.plane.Await(waiting)
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case s.heir.Follows(): // the predecessor has rules, and continues
	case x.Start == config.Without:
		s.log.Warn("starting without rules of the control plane: they take effect as soon as it sends some", "address", x.Address, "waited", x.Wait.String(), "err", err)
		return nil
	}
	var problems diag.List
	if errors.As(err, &problems) {
		return problems
	}
	return fmt.Errorf("no rules within %v: %w; start the control plane first, or set xds.start to without", wait, err)
}

// notInFiles rejects domains that files have, since it would be unclear which of the two applies.
func (s *server) notInFiles(set *envoy.Set) error {
	if both := s.fileDomains().Common(set); len(both) > 0 {
		return fmt.Errorf("the domain %s is in the rule files of Tidegate already: remove it there or here", few(both))
	}
	return nil
}

// few lists the first of many names.
func few(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s, and %d more", diag.Choice(names[:most]), more)
	}
	return diag.Choice(names)
}

// join returns the domains of files and of the control plane. Those of files take precedence.
func (p *plane) join(files *envoy.Set) *envoy.Set {
	if p.Watcher == nil {
		return files
	}
	sent := p.Set()
	if is := p.joined.Load(); is != nil && is.files == files && is.plane == sent {
		return is.both
	}
	is := &joined{files: files, plane: sent, both: files.Join(sent)}
	p.joined.Store(is)
	return is.both
}

// planeWarnings returns warnings for operators.
func (s *server) planeWarnings() (all []string) {
	p := &s.plane
	if p.Watcher == nil {
		return nil
	}
	st := p.Status()
	switch {
	case !st.Connected:
		all = append(all, "the control plane "+st.Address+" is not reached, the rules that it sent before are in force; see /rules")
	case st.Error != "":
		all = append(all, "the rules that the control plane sent last were refused, those before are in force; see /rules")
	case st.Kept:
		all = append(all, "the control plane has no rules since it was connected to, those before are in force; see /rules")
	case st.LoadedAt.IsZero():
		all = append(all, "the control plane has sent no rules yet; see /rules")
	}
	if both := s.fileDomains().Common(p.Set()); len(both) > 0 {
		all = append(all, "the domain "+few(both)+" is in rule files and in the control plane: that of the files is in force")
	}
	return all
}

func (p *plane) stats() telemetry.PlaneStats {
	st := p.Status()
	return telemetry.PlaneStats{Connected: st.Connected, Failing: st.Connected && st.Error != "", Updates: st.Updates, Rejected: st.Rejected, Domains: st.Domains}
}

func (p *plane) close() {
	if p.Watcher != nil {
		p.Close()
	}
}
