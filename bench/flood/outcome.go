package main

import (
	"fmt"
	"strings"
	"time"
)

// outcome is what a case's process answers.
type outcome struct {
	// Of the store's own account, at the end.
	Keys, Evicted, Forgotten, RefusedFull int64
	// Of the rig's account of the flood: how the fresh keys were answered.
	Came, Admitted, Refused, Wrong int64
	// Again is how many debtors were admitted after the flood.
	Again int64
	// AsNew is how many were refused for want of room: kept out, but forgotten.
	AsNew int64
	// MaxTable and MaxKeys are the largest seen at any look.
	MaxTable, MaxKeys int64
	PeakRSS           int64
	Took              time.Duration
}

func (o outcome) report(s size) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	line("%d fresh keys in %s, %.0f ns each", o.Came, o.Took.Round(time.Second/10), float64(o.Took)/float64(max(1, o.Came)))
	line("table at most %.1f MB of %.1f, with up to %d keys in it; process at most %.1f MB", mb(o.MaxTable), mb(s.maxBytes), o.MaxKeys, mb(o.PeakRSS))
	line("fresh keys: %d admitted, %d refused for want of room", o.Admitted, o.Refused)
	line("store's account: %d held, %d evicted, %d forgotten, %d refused", o.Keys, o.Evicted, o.Forgotten, o.RefusedFull)
	line("debtors admitted again: %d of %d; forgotten and refused as new: %d", o.Again, debtors, o.AsNew)
	return b.String()
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }
