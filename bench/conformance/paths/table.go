package main

import (
	"strconv"
	"strings"
)

// nodeReadings are the ways in which one answer of Node reads a target.
var nodeReadings = []string{"node-url", "node-parse", "node-raw", "nocase"}

// columns are all readings.
var columns = append([]string{"go-mux", "go-path", "jdk", "tomcat", "tomcat-lenient", "nginx", "nginx-unmerged"}, nodeReadings...)

// table is what the servers said. A row has the target, quoted, and a field per
// reading: the route and the path, or the status that refused the target.
type table struct{ rows []string }

func newTable() *table { return new(table) }

func (t *table) add(target string, row map[string]string) {
	fields := []string{strconv.QuoteToASCII(target)}
	for _, name := range columns {
		fields = append(fields, row[name])
	}
	t.rows = append(t.rows, strings.Join(fields, "\t"))
}

func (t *table) String() string {
	head := "# How real servers read request targets. Written by `make conformance`; do not edit.\n" +
		"target\t" + strings.Join(columns, "\t") + "\n"
	return head + strings.Join(t.rows, "\n") + "\n"
}
