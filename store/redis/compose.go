package redis

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The laws of internal/algo are written once more in script/, a file for each, cut into
// sections by lines such as --:fit. The templates of scripts are files, too: --<fit> stands
// for that section of every law that the script knows, and --<box find> for that section of
// that file. The sections are not functions, because Redis creates all the functions of a
// script each time it runs, which would take as long as all the rest of a decision.

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

// sectionOf returns a section that must exist.
func sectionOf(file, name string) string {
	text, ok := sectionsOf()[file][name]
	if !ok {
		panic("redis: script/" + file + ".lua has no section " + strconv.Quote(name))
	}
	return text
}

// cut drops comments and splits the rest into sections. Lines before the first section are
// in "".
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

// compose makes the script of a template that knows the laws of a set.
func compose(f template, set kindSet) string {
	c := composer{template: f, set: set}
	c.start()
	c.write(sectionOf(templateFiles[f], ""))
	return c.String()
}

// acrossFlags is the first line of scripts that touch keys of several slots. Servers before
// Redis 7 do not compile it.
const acrossFlags = "#!lua flags=allow-cross-slot-keys\n"

type composer struct {
	strings.Builder
	template template
	set      kindSet
	nested   *nestedCheck // the check that the script is about at this place; nil if it has no shape
	shared   bool         // other checks have the same key as nested
}

// start appends what a script begins with: what all have in common, and what its laws need.
func (c *composer) start() {
	if c.template.across() {
		c.WriteString(acrossFlags)
		c.write(sectionOf("across", "head"))
	}
	c.write(sectionOf("prelude", ""))
	if c.template == peekOne {
		c.write(sectionOf("peek", ""))
	}
	if c.set.has(slidings) || c.set.has(parts) {
		c.write(sectionOf("scale", "help"))
	}
	if c.set.has(logs) || c.set.has(parts) {
		c.write(sectionOf("runs", "help"))
	}
	for k := buckets; k <= kinds; k++ {
		if c.set.has(k) {
			c.write(k.section("help"))
		}
	}
}

// write appends text, with its placeholders filled in.
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
			c.write(sectionOf(file, section))
		case name == "moves":
			c.moves()
		case name == "read":
			c.read()
		case name == "done":
			if c.template.across() {
				c.write(sectionOf("across", "done"))
			}
		case name == "own":
			if !c.nested.shares {
				c.write(sectionOf("nest", "own"))
			}
		case name == "put" && c.shared:
			c.write(sectionOf("nest", "share"))
		case name == "put":
			c.write(sectionOf("nest", "put"))
		case c.nested != nil:
			c.nest(name)
		default:
			c.laws(name)
		}
	}
}

// moves appends the search for counters that are kept under their other key, which comes
// before anything is written, if a law of the set has such keys.
func (c *composer) moves() {
	if c.set.has(logs) || c.set.has(parts) {
		c.write(sectionOf("moves", ""))
	}
}

// read appends how a batch first reads the keys of a check. Across slots that shows, before
// anything is written, whether they are on this master.
func (c *composer) read() {
	section := "box"
	switch {
	case !c.template.across():
		c.write(sectionOf("box", "read"))
		return
	case c.set.has(parts):
		section = "parts"
	case c.set.has(logs):
		section = "log"
	}
	c.write(sectionOf("across", section))
}

// laws appends a section of every law, each for its kind.
func (c *composer) laws(section string) {
	word := "if"
	for k := buckets; k <= kinds; k++ {
		if !c.set.has(k) || k.section(section) == "" {
			continue
		}
		if !c.template.single() {
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
	again := section == "take" || section == "follow" || section == "refused"
	switch {
	case !again:
		fmt.Fprintf(c, "local %s\n", vars)
		c.write(k.section("advance"))
	case !c.template.single():
		fmt.Fprintf(c, "local %s = spread(saved, 1, %d)\n", vars, strings.Count(vars, ",")+1)
	}
	c.write(k.section(section))
	if section == "fit" && !c.template.single() {
		fmt.Fprintf(c, "saved = {%s}\n", vars)
	}
}

// nest appends a section of the law of a nested check. What only its first look needs is not
// seen by the checks inside of it.
func (c *composer) nest(section string) {
	law := c.nested.law
	if section == "take" {
		c.write(law.section(section))
		return
	}
	fmt.Fprintf(c, "local %s\ndo\n", strings.TrimSpace(law.section("vars")))
	c.write(law.section("advance"))
	c.write(law.section(section))
	c.WriteString("end\n")
}

func (k kind) section(name string) string { return sectionsOf()[k.file()][name] }
