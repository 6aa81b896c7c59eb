package telemetry

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// buildInfo returns a constant metric whose labels name the version.
func buildInfo() prometheus.Collector {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tidegate_build_info", Help: "What is running; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}
