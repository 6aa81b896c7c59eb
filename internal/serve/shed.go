package serve

import (
	"fmt"
	"log/slog"
	"strings"

	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules"
)

// busyWith returns how many requests the gateway is serving.
func (s *server) busyWith() int64 {
	if g := s.gateway.current.Load(); g != nil {
		return g.InFlight()
	}
	return 0
}

// logShed logs that more or less is shed than before.
func (s *server) logShed(is rules.Shedding) {
	attrs := []any{slog.String("rule", is.Rule), slog.String("steps", fmt.Sprintf("%d of %d", is.Steps, is.Most))}
	if is.Class != "" {
		attrs = append(attrs, slog.String("class", is.Class))
	}
	if is.Steps > 0 {
		attrs = append(attrs, slog.String("share", fmt.Sprintf("%.0f%%", 100*is.Share)))
	}
	var over []string
	for _, b := range is.Over {
		over = append(over, fmt.Sprintf("%s: %.3g", b.Bound, b.Value))
	}
	if len(over) > 0 {
		attrs = append(attrs, slog.String("over", strings.Join(over, ", ")))
	}
	if is.Shadow {
		attrs = append(attrs, slog.Bool("shadow", true))
	}
	if is.Steps > 0 {
		s.log.Warn("requests are shed", attrs...)
	} else {
		s.log.Info("requests are no longer shed", attrs...)
	}
}

// shedding returns how much is shed by the rules in force.
func (s *server) shedding() []telemetry.ShedStats {
	var all []telemetry.ShedStats
	for _, is := range s.rules.live.Set().Shedding() {
		all = append(all, telemetry.ShedStats{Rule: is.Rule, Steps: is.Steps, Most: is.Most, Ups: is.Ups, Downs: is.Downs, Requests: is.Requests})
	}
	return all
}
