package config

import (
	"io/fs"
	"os"
	"path/filepath"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// defaultFile is read when no other is named.
const defaultFile = "tidegate.yaml"

// Options of [Load]; the zero value is the surroundings of the process, without
// flags.
type Options struct {
	// File is the configuration file. "": the one that --config names, or else
	// TIDEGATE_CONFIG, or else tidegate.yaml if it is there.
	File string
	// Flags are from [Flags], after the flag set was parsed; nil has none.
	Flags *FlagValues
	// OwnRules says that the caller has rules to use if none are named, so that nobody is warned.
	OwnRules bool
	// Environ is the environment as KEY=value; nil means os.Environ().
	Environ []string
	// ReadFile reads the configuration file; nil reads from disk.
	ReadFile func(name string) ([]byte, error)
	// Stat looks for the files that settings name; nil means os.Stat.
	Stat func(name string) (fs.FileInfo, error)
	// OpenFiles is how many files the process may have open at once; 0 asks the system.
	OpenFiles uint64
}

// Load joins the file, the environment and the flags: a flag wins over a
// variable, that over the file, that over the default. The list has everything
// that is wrong or doubtful in any of them; when it has errors, there is no
// Config.
func Load(o Options) (*Config, diag.List) {
	if o.Flags == nil {
		o.Flags = &FlagValues{}
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.ReadFile == nil {
		o.ReadFile = bounded.Files(yamltree.MaxSize)
	}
	if o.Stat == nil {
		o.Stat = os.Stat
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = openFiles()
	}
	l := &loader{
		o: o, config: &Config{origins: make(map[string]origin)},
		wrong: make(map[string]bool), values: make(map[string][]rawValue), hidden: make(map[int]bool),
	}
	l.takeDefaults()
	l.takeFile()
	l.takeEnvironment()
	l.takeFlags()
	l.derive()
	l.check()
	l.findFiles()
	l.warnNoRules()
	return l.finish()
}

// loader fills a Config from one source after the other. It goes on after a
// problem, so that all of them are told at once.
type loader struct {
	o        Options
	config   *Config
	lines    diag.Lines            // of the configuration file
	broken   map[int]bool          // lines that are not valid YAML: nothing else is reported about them
	wrong    map[string]bool       // settings with an error, by path: not compared with others
	values   map[string][]rawValue // of settings in force
	hidden   map[int]bool          // lines that may have a secret; 0 means flags and variables
	problems diag.List
}

// takeDefaults sets all settings to the defaults that do not depend on others.
func (l *loader) takeDefaults() {
	for _, s := range table {
		if s.fallback != "" {
			s.slot.set(l.config, []rawValue{{text: s.fallback}})
		}
	}
}

// take sets s to values; no values means none.
func (l *loader) take(s *setting, values []rawValue, at origin) {
	l.config.origins[s.path], l.values[s.path], l.wrong[s.path] = at, values, false
	for _, m := range s.slot.set(l.config, values) {
		l.wrong[s.path] = true
		name := quote(s.path)
		if s.slot.many {
			at = values[m.item].origin
		}
		if s.slot.many && !(s.urls && len(values) == 1) {
			name = "an item of " + name
		}
		if m.secret {
			l.hidden[at.pos.Line] = true
		}
		l.tell(at, diag.Error, name+" "+m.message, s.advice(m, at))
	}
}

// advice returns the hint for a mistake: what to write instead, as a field, a flag or a variable,
// whichever the value came from.
func (s *setting) advice(m mistake, at origin) string {
	write := func(value string) string {
		switch {
		case s.slot.many:
			return quote(value)
		case at.inFile():
			return quote(s.leaf() + ": " + yamlText(value))
		}
		return quote(at.pos.File + "=" + value)
	}
	switch {
	case m.hint != "":
		return m.hint
	case m.fix != "":
		return "write " + write(m.fix)
	}
	return "write a value such as " + write(s.example)
}

// tell adds a problem, unless it is about a line that is not valid YAML.
func (l *loader) tell(at origin, s diag.Severity, message, hint string) {
	if at.inFile() && l.broken[at.pos.Line] {
		return
	}
	l.problems.Add(diag.Problem{Pos: at.pos, Severity: s, Source: at.source, Message: message, Hint: hint})
}

// about reports an error of a setting, at the place where it was set.
func (l *loader) about(s *setting, message, hint string) {
	at := l.config.origins[s.path]
	l.wrong[s.path] = true
	l.tell(at, diag.Error, quote(s.path)+" "+message, s.advice(mistake{hint: hint}, at))
}

// derive finds the defaults that depend on other settings, or on what is there.
func (l *loader) derive() {
	c := l.config
	l.deriveStore()
	l.deriveTelemetry()
	if !l.given("rules") {
		if _, err := l.o.Stat(l.besideFile(defaultRules)); err == nil {
			c.Rules = []string{l.besideFile(defaultRules)}
		}
	}
	if !l.given("health.timeout") {
		c.Health.Timeout = min(c.Health.Timeout, c.Health.Every)
	}
	if !l.given("limits.connections") {
		c.Limits.Connections = connectionsFor(l.o.OpenFiles)
	}
	if !l.given("limits.read_header") && c.Limits.Read > 0 {
		c.Limits.ReadHeader = min(c.Limits.ReadHeader, c.Limits.Read)
	}
}

// besideFile returns the path of name in the folder of the configuration file, or in the working
// folder if there is none.
func (l *loader) besideFile(name string) string {
	return filepath.Join(filepath.Dir(l.config.File), name)
}

// given reports whether the file, a variable or a flag has a setting, even with a wrong value.
func (l *loader) given(path string) bool {
	_, ok := l.config.origins[path]
	return ok
}

// finish returns what Load returns, with passwords masked.
func (l *loader) finish() (*Config, diag.List) {
	for i := range l.problems {
		p := &l.problems[i]
		p.Message, p.Hint, p.Source = mask(p.Message), mask(p.Hint), mask(p.Source)
		if l.hidden[p.Line] {
			p.Source = ""
		}
	}
	l.problems = l.problems.Bounded()
	l.problems.Sort()
	if l.problems.HasErrors() {
		return nil, l.problems
	}
	return l.config, l.problems
}
