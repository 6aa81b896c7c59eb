package apikey

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Change is the difference between two tables, by names of keys.
type Change struct {
	Added, Removed []string
	Changed        []string // with what: "acme: plan free, was pro"
}

// Compare returns the changes from was to now. A nil table has no keys.
func Compare(was, now *Table) (c Change) {
	if was == nil {
		was = &Table{}
	}
	byName := make(map[string]*Row, len(was.rows))
	for i := range was.rows {
		byName[was.rows[i].Name] = &was.rows[i]
	}
	for i := range now.rows {
		r := &now.rows[i]
		old := byName[r.Name]
		delete(byName, r.Name)
		if old == nil {
			c.Added = append(c.Added, r.Name)
		} else if text := r.differs(old); text != "" {
			c.Changed = append(c.Changed, r.Name+": "+text)
		}
	}
	for i := range was.rows { // in the order of the file
		if name := was.rows[i].Name; byName[name] != nil {
			c.Removed = append(c.Removed, name)
		}
	}
	return c
}

// differs describes the difference from the earlier row of the same name; "" if there is none.
func (r *Row) differs(old *Row) string {
	var all []string
	if r.hash != old.hash {
		all = append(all, "another key")
	}
	for i, column := range r.table.columns {
		if was := old.Attribute(column); was != r.values[i] {
			all = append(all, fmt.Sprintf("%s %s, was %s", column, orNone(r.values[i]), orNone(was)))
		}
	}
	for i, column := range old.table.columns {
		if !r.table.Has(column) && old.values[i] != "" {
			all = append(all, fmt.Sprintf("%s none, was %s", column, old.values[i]))
		}
	}
	return strings.Join(all, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// Sum returns the hash of a key as it is written in a file.
func Sum(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key))) }
