package board

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// team is some instances that share a table.
type team struct {
	t     *testing.T
	table *paper
	wires []*wire
	all   []*Board
	files []string
}

// newTeam starts instances, in a bubble of synctest.
func newTeam(t *testing.T, size int, files bool) *team {
	t.Helper()
	w := &team{t: t, table: newPaper()}
	dir := t.TempDir()
	for i := range size {
		file := ""
		if files {
			file = filepath.Join(dir, fmt.Sprint(i, ".json"))
		}
		w.files, w.wires, w.all = append(w.files, file), append(w.wires, &wire{paper: w.table}), append(w.all, nil)
		w.start(i)
	}
	t.Cleanup(func() {
		for _, b := range w.all {
			b.Close()
		}
	})
	return w
}

func node(i int) Node { return Node{ID: fmt.Sprint("id", i), Name: fmt.Sprint("node", i)} }

// start opens instance i, again if it was closed.
func (w *team) start(i int) {
	w.t.Helper()
	b, err := Open(Options{
		Table: w.wires[i], Self: node(i), File: w.files[i],
		Members: func(ctx context.Context) (members []Member, err error) {
			for i := range w.all {
				members = append(members, Member{Node: node(i), Follows: true})
			}
			return members, w.wires[i].call(ctx, func() {})
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.all[i] = b
	b.Start()
}

func (w *team) restart(i int) {
	w.all[i].Close()
	w.start(i)
}

// bodies are the records in force, as ID=BODY.
func bodies(b *Board) string {
	var all []string
	for _, r := range b.All() {
		all = append(all, r.ID+"="+string(r.Body))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// want wants all instances to have the same.
func (w *team) want(when, want string) {
	w.t.Helper()
	for i, b := range w.all {
		if got := bodies(b); got != want {
			w.t.Errorf("%s, instance %d has %q, want %q", when, i, got, want)
		}
	}
}

func (w *team) put(i int, id, body string) Reach {
	w.t.Helper()
	reach, err := w.all[i].Put(context.Background(), Record{ID: id, Body: []byte(body)})
	if err != nil {
		w.t.Fatal(err)
	}
	return reach
}

func (w *team) end(i int, id string) Reach {
	w.t.Helper()
	reach, err := w.all[i].End(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return reach
}
