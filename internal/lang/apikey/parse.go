package apikey

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Parse reads a file of keys; problems call it file. The table is nil if anything is wrong: keys
// are used all or not at all.
func Parse(file string, text []byte) (*Table, diag.List) {
	p := &parser{file: file, most: min(bytes.Count(text, []byte("\n")), MaxRows), texts: make(map[string]string)}
	p.names = make(map[string]int, p.most)
	p.read(text)
	if p.problems.HasErrors() {
		p.problems = p.problems.Bounded()
		p.problems.Sort()
		return nil, p.problems
	}
	return p.table, nil
}

// parser fills a table and continues after a mistake, so that all are reported at once. It never
// quotes a line: it may contain a key where its hash belongs.
type parser struct {
	file     string
	most     int // maximum number of rows, for a single allocation
	table    *Table
	hashAt   int            // the column of the hash
	places   []int          // by column of the file: the column of the table, -1 for the hash
	nameAt   int            // the column of the name, in the table
	names    map[string]int // line of each name
	texts    map[string]string
	problems diag.List
}

func (p *parser) fail(line, col int, message, hint string) {
	p.problems.Add(diag.Problem{Pos: diag.Pos{File: p.file, Line: line, Col: col}, Severity: diag.Error, Message: message, Hint: hint})
}

const headerHint = "the first line names the columns: `sha256,name,created,plan`"

func (p *parser) read(text []byte) {
	if len(text) > MaxFile {
		p.fail(0, 0, fmt.Sprintf("the file is larger than %d MiB", MaxFile>>20), "")
		return
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !p.linesFit(text) {
		return
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comment, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = '#', -1, true, true
	for {
		record, err := r.Read()
		var wrong *csv.ParseError
		switch {
		case err == io.EOF && p.table == nil:
			p.fail(0, 0, "the file is empty", headerHint)
			return
		case err == io.EOF:
			return
		case errors.As(err, &wrong):
			// What follows is ambiguous.
			p.fail(wrong.Line, wrong.Column, "this is not CSV: "+wrong.Err.Error(), "put a value with a quote or a comma in quotes, and write a quote in it twice")
			return
		case err != nil:
			p.fail(0, 0, "the file cannot be read: "+err.Error(), "")
			return
		}
		line, _ := r.FieldPos(0)
		switch {
		case p.table == nil:
			if !p.header(record, line) {
				return
			}
		case len(p.table.rows) == MaxRows:
			p.fail(line, 1, fmt.Sprintf("there are more than %d keys", MaxRows), "keep those that are in use")
			return
		default:
			p.row(record, line, func(i int) int { _, col := r.FieldPos(i); return col })
		}
	}
}

// linesFit reports lines that are too long, before memory is allocated for them.
func (p *parser) linesFit(text []byte) bool {
	if !utf8.Valid(text) {
		p.fail(0, 0, "the file is not in UTF-8", "")
		return false
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(line) > maxLine {
			p.fail(number, 1, fmt.Sprintf("the line is longer than %d bytes", maxLine), "")
			return false
		}
	}
	return true
}

func (p *parser) header(record []string, line int) bool {
	t := &Table{byHash: make(map[[sha256.Size]byte]int32, p.most), rows: make([]Row, 0, p.most)}
	p.hashAt, p.nameAt = -1, -1
	if len(record) > MaxColumns {
		p.fail(line, 1, fmt.Sprintf("there are %d columns, and at most %d may be", len(record), MaxColumns), "")
		return false
	}
	for i, cell := range record {
		name := strings.TrimSpace(cell)
		t.header = append(t.header, p.shared(name))
		switch {
		case !isColumn(name):
			hint := "use letters, digits, `-` and `_`"
			if strings.Contains(name, ";") {
				hint = "separate columns by commas, not by semicolons"
			}
			p.fail(line, 1, fmt.Sprintf("the name of column %d cannot be used", i+1), hint)
			return false
		case name == hashColumn && p.hashAt >= 0 || slices.Contains(t.columns, name):
			p.fail(line, 1, "there are two columns "+diag.Quote(name), "keep one of them")
			return false
		case name == hashColumn:
			p.hashAt = i
			p.places = append(p.places, -1)
			continue
		case name == nameColumn:
			p.nameAt = len(t.columns)
		}
		p.places = append(p.places, len(t.columns))
		t.columns = append(t.columns, t.header[i])
	}
	for column, at := range map[string]int{hashColumn: p.hashAt, nameColumn: p.nameAt} {
		if at < 0 {
			p.fail(line, 1, "there is no column "+diag.Quote(column), headerHint)
		}
	}
	p.table = t
	return !p.problems.HasErrors()
}

// isColumn reports whether name can be written in a rule, as in api_key.NAME.
func isColumn(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

func (p *parser) row(record []string, line int, col func(int) int) {
	if len(record) > len(p.places) {
		p.fail(line, col(len(p.places)), fmt.Sprintf("there are %d values for %d columns", len(record), len(p.places)), "put a value with a comma in quotes")
		return
	}
	r := Row{table: p.table, line: line, values: make([]string, len(p.table.columns))}
	sound := false
	for i, cell := range record {
		text := strings.TrimSpace(cell)
		if i == p.hashAt {
			sound = p.hash(&r, text, line, col(i))
			continue
		}
		if !p.cell(text, line, col(i)) {
			return
		}
		if p.places[i] == p.nameAt {
			r.values[p.nameAt] = strings.Clone(text)
			continue
		}
		r.values[p.places[i]] = p.shared(text)
	}
	r.Name = r.values[p.nameAt]
	switch twice := p.names[r.Name]; {
	case len(record) <= p.hashAt:
		p.fail(line, 1, "the line has no SHA-256", "write the 64 hex digits of the hash in the column `sha256`")
	case r.Name == "":
		p.fail(line, 1, "the key has no name", "write one in the column `name`: rules count by it, and it is how the key is revoked")
	case len(r.Name) > maxName:
		p.fail(line, 1, fmt.Sprintf("the name is longer than %d bytes", maxName), "")
	case twice > 0:
		p.fail(line, 1, fmt.Sprintf("the name %s is already in line %d", diag.Quote(r.Name), twice),
			"give each key a name of its own; to count several keys as one, give them a common attribute")
	case sound:
		p.names[r.Name] = line
		p.table.byHash[r.hash] = int32(len(p.table.rows))
		p.table.rows = append(p.table.rows, r)
	}
}

func (p *parser) hash(r *Row, text string, line, col int) bool {
	if n, err := hex.Decode(r.hash[:], []byte(text[:min(len(text), 2*sha256.Size)])); err != nil || n != sha256.Size || len(text) != 2*sha256.Size {
		p.fail(line, col, "this is not a SHA-256, which has 64 hex digits", "`tidegate api-keys add` writes it; or `printf %s KEY | sha256sum`. A key itself does not belong into the file")
		return false
	}
	if i, ok := p.table.byHash[r.hash]; ok {
		p.fail(line, col, fmt.Sprintf("the same key is already in line %d", p.table.rows[i].line), "a key has one name: keep one of the lines")
		return false
	}
	return true
}

func (p *parser) cell(text string, line, col int) bool {
	switch {
	case len(text) > maxCell:
		p.fail(line, col, fmt.Sprintf("the value is longer than %d bytes", maxCell), "")
	case strings.ContainsFunc(text, unicode.IsControl):
		p.fail(line, col, "the value has a control character or a line end in it", "")
	default:
		return true
	}
	return false
}

// shared returns text in memory of its own, not that of its line. Most attributes have few values,
// so equal ones share memory.
func (p *parser) shared(text string) string {
	if s, ok := p.texts[text]; ok {
		return s
	}
	s := strings.Clone(text)
	p.texts[s] = s
	return s
}
