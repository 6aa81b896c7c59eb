package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// traceParser reads a script from top to bottom. It holds what the lines so far have
// set: limits by name, and the day and zone that times of day are in.
type traceParser struct {
	limits map[string]*tidegate.Limit
	day    string
	zone   *time.Location
}

// parseTrace returns the steps of a script. Lines that only set something are not steps.
func parseTrace(file, text string) ([]traceStep, error) {
	p := traceParser{limits: map[string]*tidegate.Limit{}, day: "2026-01-05", zone: time.UTC}
	var steps []traceStep
	for i, line := range strings.Split(text, "\n") {
		line, _, _ := strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		step, err := p.parseLine(line)
		if err != nil {
			return nil, parseError(file, i+1, "%v\n\t%s", err, line)
		}
		if step != nil {
			step.file, step.line, step.text = file, i+1, line
			steps = append(steps, *step)
		}
	}
	return steps, nil
}

// parseLine returns the step of a line, nil if it only sets something.
func (p *traceParser) parseLine(line string) (*traceStep, error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "limit", "relimit":
		return nil, p.parseLimit(word, rest)
	case "date":
		_, err := time.Parse(time.DateOnly, rest)
		p.day = rest
		return nil, err
	case "zone":
		zone, err := time.LoadLocation(rest)
		p.zone = zone
		return nil, err
	case "at":
		return p.parseStep(rest)
	}
	return nil, fmt.Errorf("unknown line %q: want limit, relimit, date, zone or at", word)
}

// parseLimit reads "limit NAME: …", or "relimit NAME: …", which changes its numbers.
func (p *traceParser) parseLimit(word, text string) error {
	name, text, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("a %s is written %q", word, word+" NAME: 5/1m sliding_log")
	}
	old, known := p.limits[name]
	if known != (word == "relimit") {
		return fmt.Errorf("%s %q: a limit is new, a relimit known", word, name)
	}
	l, err := parseTraceLimit(name, strings.Fields(text))
	if err != nil {
		return err
	}
	if known && l.Identity() != old.Identity() {
		return fmt.Errorf("relimit %q is counted as %s, before as %s: only numbers may change", name, l.Identity(), old.Identity())
	}
	p.limits[name] = l
	return nil
}

// parseStep reads what follows "at": a time, a command with its options, and the answer.
func (p *traceParser) parseStep(text string) (*traceStep, error) {
	asked, wanted, ok := strings.Cut(text, "->")
	words := strings.Fields(asked)
	if len(words) < 2 {
		return nil, fmt.Errorf("a step is written %q", "at 1:00:00 take NAME -> ok")
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", p.day+" "+words[0], p.zone)
	if err != nil {
		return nil, fmt.Errorf("time %q: want 1:00:00", words[0])
	}
	s := &traceStep{at: at, command: words[1], copies: 1, times: 1}
	o, err := s.parseOptions(words[2:], p.limits)
	if err != nil {
		return nil, err
	}
	if err := s.complete(o); err != nil {
		return nil, err
	}
	if !ok {
		switch s.command {
		case "return", "release", "force", "reset":
			return s, nil
		}
		return nil, fmt.Errorf("%s needs an answer to expect, behind ->", s.command)
	}
	s.want, err = parseExpectation(strings.Fields(wanted), p.limits)
	return s, err
}

// checkOptions are the options of a step that apply to all of its checks.
type checkOptions struct {
	cost *int64
	key  string
	wait time.Duration
}

// parseOptions reads the names of limits, which become checks, and NAME=VALUE options.
func (s *traceStep) parseOptions(words []string, limits map[string]*tidegate.Limit) (checkOptions, error) {
	o := checkOptions{key: "key"}
	for _, w := range words {
		name, value, isOption := strings.Cut(w, "=")
		var err error
		switch {
		case !isOption:
			name, advice := strings.CutSuffix(w, "?")
			l := limits[name]
			if l == nil {
				return o, fmt.Errorf("no limit is called %q", name)
			}
			s.checks = append(s.checks, tidegate.Check{Limit: l, Advisory: advice})
		case name == "cost":
			var n int64
			n, err = strconv.ParseInt(value, 10, 64)
			o.cost = &n
		case name == "key":
			o.key = value
		case name == "wait":
			o.wait, err = time.ParseDuration(value)
		case name == "copies":
			s.copies, err = strconv.Atoi(value)
		case name == "times":
			s.times, err = strconv.Atoi(value)
		case name == "as":
			s.as = value
		case name == "of":
			s.of = value
		default:
			err = fmt.Errorf("want cost, key, wait, copies, times, as or of")
		}
		if err != nil {
			return o, fmt.Errorf("option %q: %w", w, err)
		}
	}
	return o, nil
}

// complete fills in the checks from o, as the command needs them.
func (s *traceStep) complete(o checkOptions) error {
	cost := int64(1)
	if o.cost != nil {
		cost = *o.cost
	}
	needsOf := false
	switch s.command {
	case "take", "acquire", "force", "reserve", "reset":
	case "peek":
		cost = 0
	case "return", "release":
		cost, needsOf = -cost, true
	case "renew":
		needsOf = true
	case "settle":
		needsOf = true
		s.checks = []tidegate.Check{{Cost: cost}} // carries the actual cost and nothing else
	default:
		return fmt.Errorf("unknown command %q", s.command)
	}
	if needsOf && s.of == "" {
		return fmt.Errorf("%s needs of=X, the receipt of a take marked as=X", s.command)
	}
	if len(s.checks) == 0 {
		return fmt.Errorf("%s needs the name of a limit", s.command)
	}
	for i := range s.checks {
		c := &s.checks[i]
		c.Key, c.Cost, c.MaxWait, c.Estimate = o.key, cost, o.wait, s.command == "reserve"
	}
	return nil
}
