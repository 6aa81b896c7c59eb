package config

import (
	"slices"
	"strings"
)

// setting describes one value of the configuration, in all the ways to set it.
type setting struct {
	path     string // in the file; also the flag
	slot     slot   // where it is in Config, and how it is written
	fallback string // the default as it would be written; "" means none: then an empty flag unsets it
	derived  string // how the default is found if it depends on other settings or the machine
	example  string
	help     string   // in backquotes the word that --help has for the value
	file     fileNeed // what must be at the path that is the value
	beside   []string // suffixes of that path: files that are written as well
	item     string   // items of the list may be maps with this field alone
	urls     bool     // items of the list may be URLs with commas between hosts
	pairs    bool     // the list may be a map, whose fields are items KEY=VALUE
	entry    []string // items of the list may be maps with these two fields, for KEY and VALUE of KEY=VALUE
	of       string   // the store that it is about; "" means any
	shape    string   // the hint if a map or a list stands where a value belongs
}

func (s *setting) flag() string { return "--" + s.path }

func (s *setting) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

// leaf returns the last word of the path: the field in its map.
func (s *setting) leaf() string { return s.path[strings.LastIndex(s.path, ".")+1:] }

// preset returns the default in words; "" for none.
func (s *setting) preset() string {
	if s.derived != "" {
		return s.derived
	}
	return s.fallback
}

// lookup returns the setting of a path, nil when there is none.
func lookup(path string) *setting {
	for _, s := range table {
		if s.path == path {
			return s
		}
	}
	return nil
}

// firstBelow returns the first setting of the map at path.
func firstBelow(path string) *setting {
	i := slices.IndexFunc(table, func(s *setting) bool { return strings.HasPrefix(s.path, path+".") })
	return table[i]
}

// fields returns the words that may follow prefix, which is "" or ends in a dot, in
// the order of the table.
func fields(prefix string) []string {
	var all []string
	for _, s := range table {
		rest, ok := strings.CutPrefix(s.path, prefix)
		if !ok {
			continue
		}
		field, _, _ := strings.Cut(rest, ".")
		if len(all) == 0 || all[len(all)-1] != field {
			all = append(all, field)
		}
	}
	return all
}

// Setting is one value in force.
type Setting struct {
	Path    string `json:"path"`    // in the file, as in listen.admin
	Flag    string `json:"flag"`    // --listen.admin
	Env     string `json:"env"`     // TIDEGATE_LISTEN_ADMIN
	Value   string `json:"value"`   // as a flag takes it, "" for none
	Origin  string `json:"origin"`  // tidegate.yaml:7:12, the flag, the variable, or default
	Default string `json:"default"` // or how it is found; "" for none
	Help    string `json:"help"`
}

// Settings returns all values in force, in the order of the documentation. None is a
// secret: those are in files of their own, or in a URL, where they are starred out.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, s := range table {
		all = append(all, Setting{
			Path: s.path, Flag: s.flag(), Env: s.env(),
			Value:   strings.Join(s.slot.write(c), ","),
			Origin:  c.origins[s.path].String(),
			Default: s.preset(),
			Help:    strings.ReplaceAll(s.help, "`", ""),
		})
	}
	return all
}
