package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/board"
)

// Follow makes a program obey what operators order through the gateways of `tidegate serve` that
// share its Redis: it puts their bans and overrides in force in live, now and within a second of
// every order, until the Store is closed. live is the [rules.Live] of the rules of a Gate; this
// package does not import rules, so its type is a parameter.
//
//	set, err := rules.Load("rules.yaml", rules.Config{})
//	…
//	live := rules.NewLive(set)
//	fleet.Follow(store, live)
//	gate := tidegate.NewGate(live, store)
//
// If a measure (a ban or an override) cannot be put in force here, because the rules are others or
// have changed since, [Options].OnMeasure is called, and the other measures hold. It is called when
// orders change, not when the rules do.
//
// [rules.Live]: https://pkg.go.dev/tidegate.dev/tidegate/rules#Live
func Follow[M, P any](s *Store, live interface{ SetMeasures(all []M) []P }) {
	told := make(map[string]bool)
	s.board.Watch(func(all []board.Record) {
		measures := make([]M, 0, len(all))
		var problems []error
		for _, r := range all {
			var m M
			if err := json.Unmarshal(r.Body, &m); err != nil {
				problems = append(problems, fmt.Errorf("measure %s: %w", r.ID, err))
				continue
			}
			measures = append(measures, m)
		}
		for _, p := range live.SetMeasures(measures) {
			problems = append(problems, fmt.Errorf("%v", p))
		}
		s.Forget() // whoever is remembered as refused may pass now
		told = s.tellProblems(problems, told)
	})
	s.board.Start()
}

// tellProblems calls OnMeasure with the problems that are not in told, and returns the texts of all,
// to be the next told.
func (s *Store) tellProblems(problems []error, told map[string]bool) map[string]bool {
	now := make(map[string]bool, len(problems))
	for _, err := range problems {
		if text := err.Error(); !now[text] {
			now[text] = true
			if s.o.OnMeasure != nil && !told[text] {
				s.o.OnMeasure(err)
			}
		}
	}
	return now
}

// Packages such as internal/serve find the board and shelves of a Store without exported methods.
func init() {
	board.Register(func(s tidegate.Store) (*board.Board, bool) {
		own, ok := s.(*Store)
		if !ok {
			return nil, false
		}
		return own.board, true
	})
	chain.RegisterShelf(func(s tidegate.Store, name string) (chain.Shelf, bool) {
		own, ok := s.(*Store)
		if !ok {
			return nil, false
		}
		return own.shared.Shelf(name), true
	})
}

// openBoard opens the board by which operators' orders reach all instances.
func (s *Store) openBoard() (err error) {
	s.board, err = board.Open(board.Options{
		Table: s.shared.Table(), Self: board.Node{ID: s.registry.ID(), Name: s.name}, Members: s.boardMembers, OnStart: s.registry.Beat, File: s.o.StateFile, Log: s.o.Log,
	})
	return err
}

// boardMembers lists all members, also those that do not follow the board and so give no answers.
func (s *Store) boardMembers(ctx context.Context) ([]board.Member, error) {
	members, err := s.Members(ctx)
	all := make([]board.Member, len(members))
	for i := range members {
		m := &members[i]
		all[i] = board.Member{Node: board.Node{ID: m.ID, Name: m.Name}, Follows: m.Follows}
	}
	return all, err
}
