package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// parseTraceLimit reads "5/1m token_bucket burst 10", "3/month quota anchor 31"
// or "2 slots lease 30s".
func parseTraceLimit(name string, words []string) (*tidegate.Limit, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("limit %q: want %q", name, "5/1m sliding_log")
	}
	spec := tidegate.Spec{Name: name}
	events, period, _ := strings.Cut(words[0], "/")
	var err error
	if spec.Events, err = strconv.ParseInt(events, 10, 64); err != nil {
		return nil, fmt.Errorf("limit %q: events %q: %w", name, events, err)
	}
	switch words[1] {
	case "slots":
		spec.Algorithm = tidegate.Concurrency
	case "quota":
		spec.Algorithm = tidegate.Quota
		if spec.Calendar, err = parseCalendar(period); err != nil {
			return nil, fmt.Errorf("limit %q: %w", name, err)
		}
	default:
		if spec.Algorithm, err = tidegate.ParseAlgorithm(words[1]); err != nil {
			return nil, fmt.Errorf("limit %q: %w", name, err)
		}
		if spec.Period, err = time.ParseDuration(period); err != nil {
			return nil, fmt.Errorf("limit %q: period %q: %w", name, period, err)
		}
	}
	if err := parseTraits(&spec, words[2:]); err != nil {
		return nil, fmt.Errorf("limit %q: %w", name, err)
	}
	return tidegate.NewLimit(spec)
}

func parseTraits(spec *tidegate.Spec, words []string) error {
	for len(words) > 0 {
		trait := words[0]
		words = words[1:]
		switch trait {
		case "ceiling":
			spec.Ceiling = true
			continue
		case "count_rejected":
			spec.CountRejected = true
			continue
		case "raw":
			spec.RawTime = true
			continue
		}
		if len(words) == 0 {
			return fmt.Errorf("%q needs a value", trait)
		}
		value := words[0]
		words = words[1:]
		var err error
		switch trait {
		case "burst":
			spec.Burst, err = strconv.ParseInt(value, 10, 64)
		case "parts":
			spec.Parts, err = strconv.Atoi(value)
		case "anchor":
			spec.Anchor, err = strconv.Atoi(value)
		case "zone":
			spec.Zone = value
		case "lease":
			spec.Period, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("want burst, raw, parts, ceiling, count_rejected, anchor, zone or lease")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", trait, value, err)
		}
	}
	return nil
}

func parseCalendar(name string) (tidegate.Calendar, error) {
	for c := tidegate.Day; c <= tidegate.Year; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("a quota is per day, week, month or year, not %q", name)
}
