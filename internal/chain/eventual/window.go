package eventual

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// window is a window of a limit, or a part of one, in µs since the Unix epoch.
type window struct {
	start, end int64
	over       int64 // when nothing that was counted in it matters any more
}

// windowAt returns the window, or part of one, that contains the instant us.
func windowAt(l *tidegate.Limit, us int64) window {
	switch l.Algorithm {
	case tidegate.SubWindows:
		law := algo.NewPartsLaw(l)
		start := us / law.Part * law.Part
		return window{start, start + law.Part, start + (law.Parts+1)*law.Part}
	case tidegate.SlidingWindow:
		period := int64(l.Period / time.Microsecond)
		start := us / period * period
		return window{start, start + period, start + 2*period}
	default:
		span := algo.SpanAt(l, us*algo.Micro)
		return window{max(span.Start, 0), span.End, span.End}
	}
}

// windowsOf returns how many windows of a limit, or parts of one, matter at the same time.
func windowsOf(l *tidegate.Limit) int {
	switch l.Algorithm {
	case tidegate.SubWindows:
		return l.Parts + 1
	case tidegate.SlidingWindow:
		return 2
	}
	return 1
}
