package config

import (
	"flag"
	"fmt"
	"strings"
)

// FlagValues are the settings that flags gave, for [Options]. [Load] checks them, together with the
// rest.
type FlagValues struct {
	file  []string            // --config and -c
	texts map[string][]string // by path, in the order given
}

// Flags registers a flag for every setting, and -c or --config for the file.
func Flags(fs *flag.FlagSet) *FlagValues {
	v := &FlagValues{texts: make(map[string][]string)}
	file := func(text string) error {
		v.file = append(v.file, text)
		return nil
	}
	const usage = "configuration `FILE` (default " + envFile + ", or " + defaultFile + " if it is there)"
	fs.Func("config", usage, file)
	fs.Func("c", "short for --config `FILE`", file)
	for _, s := range table {
		fs.Var(&flagValue{s, v}, s.path, s.help)
	}
	return v
}

// flagValue is one flag of a flag set.
type flagValue struct {
	setting *setting
	values  *FlagValues
}

func (f *flagValue) Set(text string) error {
	f.values.texts[f.setting.path] = append(f.values.texts[f.setting.path], text)
	return nil
}

// Words returns all values that the setting can have; nil if they cannot be listed.
func (f *flagValue) Words() []string { return f.setting.slot.words }

// String returns the default, which --help prints. Package flag also calls it on a zero flagValue.
func (f *flagValue) String() string {
	if f.setting == nil {
		return ""
	}
	return f.setting.preset()
}

// IsBoolFlag lets --trust.unix stand for --trust.unix=true.
func (f *flagValue) IsBoolFlag() bool { return f.setting.slot.yesNo }

// takeFlags takes settings from flags. An empty flag unsets a setting that has no default.
func (l *loader) takeFlags() {
	for _, s := range table {
		texts := l.o.Flags.texts[s.path]
		if len(texts) == 0 {
			continue
		}
		at := outside(s.flag(), strings.Join(texts, ","))
		switch {
		case len(texts) == 1 && texts[0] == "" && s.fallback == "":
			l.take(s, nil, at)
		case s.slot.many:
			l.take(s, s.split(strings.Join(texts, ","), at), at)
		case len(texts) > 1:
			l.config.origins[s.path] = at
			l.about(s, fmt.Sprintf("is given twice: %s and %s", quote(texts[0]), quote(texts[1])), "keep one of the flags")
		default:
			l.take(s, []rawValue{{origin: at, text: texts[0]}}, at)
		}
	}
}

// outside returns the origin of a value that a flag or a variable gave.
func outside(name, value string) origin {
	at := origin{source: name + "=" + value}
	at.pos.File = name
	return at
}

// split returns the items of the list that a flag or a variable gave.
func (s *setting) split(text string, at origin) []rawValue {
	var values []rawValue
	for item := range strings.SplitSeq(text, ",") {
		values = append(values, rawValue{origin: at, text: item})
	}
	switch {
	case s.urls:
		values = joinHosts(values)
	case len(s.entry) > 0:
		values = joinShards(values)
	}
	return values
}
