// Package apikey recognises API keys by their SHA-256. A file has a line for each key: the hash, a
// name, the date of creation, and attributes such as a plan. The keys themselves are not stored:
// they are shown once, when they are created.
//
// Start with [Parse] and [Table.Lookup]; [Add] and [Revoke] change a file. The package does not
// count uses and does not watch files: the owner of a Table replaces it.
package apikey

import (
	"crypto/sha256"
	"slices"
	"unsafe"
)

// Bounds of a file. A file that exceeds them is rejected as a whole.
const (
	MaxFile    = 16 << 20
	MaxRows    = 100_000
	MaxColumns = 32
	maxLine    = 8 << 10
	maxName    = 128
	maxCell    = 256
)

// MaxKey is the length of the longest key that is looked up.
const MaxKey = 1024

// Columns with a meaning. All others are attributes.
const (
	hashColumn    = "sha256"
	nameColumn    = "name"
	createdColumn = "created"
)

// Table has the keys of a file. It is immutable.
type Table struct {
	rows    []Row
	byHash  map[[sha256.Size]byte]int32 // numbers of rows
	header  []string                    // all columns, in the order of the file
	columns []string                    // the same without the hash
}

// Row is the entry of one key.
type Row struct {
	Name   string
	table  *Table
	values []string // by column; "" for none
	hash   [sha256.Size]byte
	line   int
}

// Lookup returns the row of a key; nil means that there is none. It searches by hash, so its
// duration says nothing about the keys in the table.
func (t *Table) Lookup(key string) *Row {
	if t == nil || key == "" || len(key) > MaxKey {
		return nil
	}
	// The conversion would copy the key; Sum256 neither keeps nor changes it.
	i, ok := t.byHash[sha256.Sum256(unsafe.Slice(unsafe.StringData(key), len(key)))]
	if !ok {
		return nil
	}
	return &t.rows[i]
}

// Attribute returns the value of a column; "" means that there is none.
func (r *Row) Attribute(column string) string {
	for i, c := range r.table.columns {
		if c == column && i < len(r.values) {
			return r.values[i]
		}
	}
	return ""
}

// Created returns when the key was created, as the file says.
func (r *Row) Created() string { return r.Attribute(createdColumn) }

// Len returns the number of keys.
func (t *Table) Len() int { return len(t.rows) }

// Has reports whether the file has a column of that name.
func (t *Table) Has(column string) bool { return slices.Contains(t.columns, column) }

// Columns returns the columns that rules can read, in the order of the file.
func (t *Table) Columns() []string { return slices.Clone(t.columns) }

// Attributes returns the columns other than hash, name and date, in the order of the file.
func (t *Table) Attributes() []string {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c string) bool { return c == nameColumn || c == createdColumn })
}

// Rows returns all rows, in the order of the file.
func (t *Table) Rows() []Row { return slices.Clone(t.rows) }

// find returns the row of that name, or nil.
func (t *Table) find(name string) *Row {
	i := slices.IndexFunc(t.rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &t.rows[i]
}
