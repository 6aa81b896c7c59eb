package redis

import (
	"fmt"
	"strings"
	"sync"
)

// The laws of internal/algo are in script/ once more, a file for each, cut into sections
// by lines such as --:fit. The forms that a script can have are files, too; where one of
// them says --<fit>, the section of every law it has to know goes there, and where it says
// --<box find>, that section of that file. The sections are not functions, because Redis
// makes all the functions of a script anew each time it runs, which would take as long as
// all the rest of a decision.

// sections of a file by name; what stands before the first is for readers.
type sections map[string]string

var sectionsOf = sync.OnceValue(func() map[string]sections {
	entries, err := files.ReadDir("script")
	if err != nil {
		panic("redis: " + err.Error()) // they are embedded
	}
	all := map[string]sections{}
	for _, e := range entries {
		text, err := files.ReadFile("script/" + e.Name())
		if err != nil {
			panic("redis: " + err.Error())
		}
		all[strings.TrimSuffix(e.Name(), ".lua")] = cut(string(text))
	}
	return all
})

// cut drops comments, which Redis need not read, and sorts the rest by section. What is
// in none is in "".
func cut(text string) sections {
	all, at := sections{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(bare, "--:"); ok {
			at = name
			continue
		}
		if bare == "" || strings.HasPrefix(bare, "--") && !strings.HasPrefix(bare, "--<") {
			continue
		}
		all[at] += bare + "\n"
	}
	return all
}

// compose makes a script of a form that knows the laws of a set.
func compose(f form, set kindSet) string {
	c := composer{form: f, set: set}
	if f.across() {
		c.WriteString(acrossFlags)
		c.write(sectionsOf()["across"]["head"])
	}
	c.write(sectionsOf()["prelude"][""])
	if set.has(slidings) || set.has(parts) {
		c.write(sectionsOf()["scale"]["help"])
	}
	if set.has(logs) || set.has(parts) {
		c.write(sectionsOf()["runs"]["help"])
	}
	for k := buckets; k <= kinds; k++ {
		if set.has(k) {
			c.write(k.section("help"))
		}
	}
	c.write(sectionsOf()[formFiles[f]][""])
	return c.String()
}

// acrossFlags is the first line of scripts that touch keys of several slots. Servers before
// Redis 7 do not compile it.
const acrossFlags = "#!lua flags=allow-cross-slot-keys\n"

type composer struct {
	strings.Builder
	form form
	set  kindSet
}

// write appends text, with what it asks for in place.
func (c *composer) write(text string) {
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "--<")
		if !ok {
			c.WriteString(line)
			continue
		}
		name = strings.TrimSuffix(name, ">\n")
		switch file, section, of := strings.Cut(name, " "); {
		case of:
			c.write(sectionsOf()[file][section])
		case name == "moves":
			c.moves()
		case name == "read":
			c.read()
		case name == "done":
			if c.form.across() {
				c.write(sectionsOf()["across"]["done"])
			}
		default:
			c.laws(name)
		}
	}
}

// moves appends how changes of counters that are kept elsewhere are found before anything
// is written, if there are any that can be.
func (c *composer) moves() {
	if c.set.has(logs) || c.set.has(parts) {
		c.write(sectionsOf()["moves"][""])
	}
}

// read appends how a batch first looks at the keys of a check. Across slots that finds, before
// anything is written, whether they are there.
func (c *composer) read() {
	section := "box"
	switch {
	case !c.form.across():
		c.write(sectionsOf()["box"]["read"])
		return
	case c.set.has(parts):
		section = "parts"
	case c.set.has(logs):
		section = "log"
	}
	c.write(sectionsOf()["across"][section])
}

// laws appends a section of every law, each for its kind.
func (c *composer) laws(section string) {
	word := "if"
	for k := buckets; k <= kinds; k++ {
		if !c.set.has(k) || k.section(section) == "" {
			continue
		}
		if !c.form.single() {
			fmt.Fprintf(c, "%s kind == %d then\n", word, k)
			word = "elseif"
		}
		c.law(k, section)
	}
	if word == "elseif" {
		c.WriteString("end\n")
	}
}

// law appends a section with the variables of its law: read from the state when a check
// is first looked at, or as they were left then.
func (c *composer) law(k kind, section string) {
	vars := strings.TrimSpace(k.section("vars"))
	again := section == "take" || section == "reject"
	switch {
	case !again:
		fmt.Fprintf(c, "local %s\n", vars)
		c.write(k.section("settle"))
	case !c.form.single():
		fmt.Fprintf(c, "local %s = spread(saved, 1, %d)\n", vars, strings.Count(vars, ",")+1)
	}
	c.write(k.section(section))
	if section == "fit" && !c.form.single() {
		fmt.Fprintf(c, "saved = {%s}\n", vars)
	}
}

func (k kind) section(name string) string { return sectionsOf()[k.file()][name] }
