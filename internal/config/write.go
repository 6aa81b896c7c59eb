package config

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Write writes the values in force as a configuration file for the working
// folder, each with its origin in a comment. What is not set is commented out, and
// passwords are starred out.
func (c *Config) Write(w io.Writer) error {
	file := c.File
	if file == "" {
		file = "no configuration file"
	}
	p := &printer{config: c}
	p.section("", "")
	var text strings.Builder
	fmt.Fprintf(&text, "# The settings in force, and where each comes from. Read: %s.\n", file)
	for _, line := range p.lines {
		if line.comment == "" {
			text.WriteString(line.text + "\n")
			continue
		}
		fmt.Fprintf(&text, "%-*s  # %s\n", min(p.widest(), 40), line.text, line.comment)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// printer makes lines of a Config.
type printer struct {
	config *Config
	lines  []line
}

type line struct{ text, comment string }

func (p *printer) widest() int {
	n := 0
	for _, l := range p.lines {
		n = max(n, len([]rune(l.text)))
	}
	return n
}

// section adds the fields below prefix, without those of a store that is not in
// force, and reports whether any of them is set.
func (p *printer) section(prefix, indent string) (any bool) {
	for _, field := range fields(prefix) {
		path := prefix + field
		s := lookup(path)
		inner := len(fields(path+".")) > 0
		if of := storeOf(path); of != "" && of != p.config.Store.Kind {
			continue
		}
		if !inner {
			any = p.setting(s, indent) || any
			continue
		}
		header := len(p.lines)
		p.lines = append(p.lines, line{text: indent + field + ":"})
		if s != nil {
			// Which of several things it is, is the first field below.
			p.lines[header].comment = p.config.origins[path].String()
		}
		if p.section(path+".", indent+"  ") {
			any = true
		} else {
			p.lines[header].text = "# " + p.lines[header].text
		}
	}
	return any
}

// storeOf returns the store that the settings at path are about; "" means any.
func storeOf(path string) string {
	if s := lookup(path); s != nil {
		return s.of
	}
	return firstBelow(path).of
}

// setting adds the line of s, and reports whether it is set.
func (p *printer) setting(s *setting, indent string) bool {
	values := s.slot.write(p.config)
	origin := p.config.origins[s.path].String()
	if len(values) == 0 {
		comment := "not set"
		if origin != "default" {
			comment += ", by " + origin
		}
		p.lines = append(p.lines, line{"# " + indent + s.leaf() + ":", comment})
		return false
	}
	for i, v := range values {
		values[i] = yamlText(v)
	}
	text := strings.Join(values, ", ")
	if s.slot.many && !(s.urls && len(values) == 1) {
		text = "[" + text + "]"
	}
	p.lines = append(p.lines, line{indent + s.leaf() + ": " + text, origin})
	return true
}

// plain matches what needs no quotes in YAML, not even within brackets: a port alone, or words with
// at most one colon besides that of a URL's scheme.
var plain = regexp.MustCompile(`^(:\d+|([a-z]+://)?[\w/.][\w/.+=~%-]*(:[\w/.+=~%-]+)?)$`)

// yamlText returns a value as it is written in the file.
func yamlText(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return strconv.Quote(value)
}

// Markdown writes the table of all settings for the documentation.
func Markdown(w io.Writer) error {
	var text strings.Builder
	text.WriteString("| setting, and flag with `--` | environment variable | default | what it is |\n|---|---|---|---|\n")
	for _, s := range table {
		preset := s.derived
		switch {
		case preset != "":
		case s.fallback != "":
			preset = "`" + s.fallback + "`"
		default:
			preset = "none"
		}
		fmt.Fprintf(&text, "| `%s` | `%s` | %s | %s |\n", s.path, s.env(), preset, s.help)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
