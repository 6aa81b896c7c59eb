package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"tidegate.dev/tidegate/internal/front/admin"
)

// printFleet prints a line for each instance, and the warnings.
func printFleet(env *Env, is *admin.Fleet) {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INSTANCE\tVERSION\tRULES\tUP\tCLOCK\tCIRCUIT\tBACKLOG\tLEASES\tLAG\tSHARE")
	names := instanceNames(is.Instances)
	for i := range is.Instances {
		one := &is.Instances[i]
		if !one.Known {
			fmt.Fprintf(w, "%s\tunknown\t?\t?\t?\t?\t?\t?\t?\t?\n", names[i])
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", names[i], orDash(one.Version), orDash(one.Rules),
			upText(one), offsetText(one.Clock), circuitText(one.Circuit), one.Backlog, leasesText(one), lagText(one), shareText(one.Counts))
	}
	_ = w.Flush() // there is nowhere to report that standard output fails
	printServers(env, is.Servers)
	printRegions(env, is.Regions)
	for _, warning := range is.Warnings {
		fmt.Fprintf(env.Stdout, "%s %s\n", env.paint(red, "warning:"), strings.Map(graphic, warning))
	}
}

// printServers prints the state of each server of the store, as seen by the instance that was asked.
func printServers(env *Env, servers []admin.StoreServer) {
	if len(servers) == 0 {
		return
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSERVER\tSTATUS\tSINCE\tBACKLOG")
	for _, s := range servers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", valueText(s.Name), valueText(s.Status), s.Since.Local().Format(time.DateTime), s.Backlog)
	}
	_ = w.Flush()
}

// printRegions prints how old the counts of each other region are.
func printRegions(env *Env, regions []admin.Region) {
	if len(regions) == 0 {
		return
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nREGION\tSTATUS\tLAG")
	for _, r := range regions {
		status, lag := "ok", secondsText(r.Lag)
		switch {
		case r.CutOff:
			status = "cut off"
		case !r.Heard:
			status, lag = "not heard of yet", "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", valueText(r.Name), status, lag)
	}
	_ = w.Flush()
}

// graphic replaces what a terminal would not print as it is.
func graphic(r rune) rune {
	if !unicode.IsGraphic(r) {
		return '?'
	}
	return r
}

// instanceNames returns the names of instances, with a part of their IDs where several have the
// same name.
func instanceNames(all []admin.Instance) []string {
	count := make(map[string]int)
	for i := range all {
		count[all[i].Name]++
	}
	names := make([]string, len(all))
	for i := range all {
		one := &all[i]
		names[i] = valueText(cmp.Or(one.Name, one.ID))
		if one.Name != "" && count[one.Name] > 1 {
			names[i] += " " + valueText(one.ID[:min(len(one.ID), shortID)])
		}
		if one.Self {
			names[i] += " (asked)"
		}
	}
	return names
}

// shortID is how much of an ID tells instances apart.
const shortID = 6

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return valueText(text)
}

// unquoted is orDash for text that a server composes, such as that of a limit: a comma in it is no
// reason for quotes.
func unquoted(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Map(graphic, text)
}

// upText returns how long an instance had been running when it was last heard of, in at most two units.
func upText(one *admin.Instance) string {
	up := max(one.Seen.Sub(one.Started), 0)
	const day = 24 * time.Hour
	switch {
	case up >= day:
		return fmt.Sprintf("%dd%dh", up/day, up%day/time.Hour)
	case up >= time.Hour:
		return fmt.Sprintf("%dh%dm", up/time.Hour, up%time.Hour/time.Minute)
	case up >= time.Minute:
		return fmt.Sprintf("%dm%ds", up/time.Minute, up%time.Minute/time.Second)
	}
	return up.Truncate(time.Second).String()
}

// offsetText returns +1.5s, or +0.2ms ±0.5ms where the uncertainty matters.
func offsetText(c *admin.Clock) string {
	if c == nil {
		return "?"
	}
	text := secondsText(max(c.Offset, -c.Offset))
	if c.Offset < 0 && text != secondsText(0) {
		text = "-" + text
	} else {
		text = "+" + text
	}
	if c.Within*10 > max(c.Offset, -c.Offset) {
		text += " ±" + secondsText(c.Within)
	}
	return text
}

// secondsText returns a number of seconds with the digits that matter.
func secondsText(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond)/time.Millisecond)
	default:
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	}
}

func circuitText(c *admin.Circuit) string {
	if c == nil {
		return "?"
	}
	text := valueText(c.Status)
	if c.Count > 0 {
		text += fmt.Sprintf(" (%s)", plural(c.Count, "server"))
	}
	return text
}

func leasesText(one *admin.Instance) string {
	if one.Leases == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", one.Leases, plural(int(one.LeasedEvents), "event"))
}

// lagText returns how old the counts are that others have of an instance's eventual limits.
func lagText(one *admin.Instance) string {
	if one.Lag == 0 {
		return "-"
	}
	return secondsText(one.Lag)
}

func shareText(counts int) string {
	switch counts {
	case 0:
		return "?"
	case 1:
		return "all"
	}
	return fmt.Sprintf("1/%d", counts)
}
