package board

import "tidegate.dev/tidegate"

// finders are the functions given to Register.
var finders []func(tidegate.Store) (*Board, bool)

// Register adds a function that returns the board behind a store, and false for stores of
// other packages. A store package calls it in an init function, so that it need not export a
// method that only this program calls.
func Register(find func(tidegate.Store) (*Board, bool)) { finders = append(finders, find) }

// Of returns the board behind s, and false if the package of s registered none.
func Of(s tidegate.Store) (*Board, bool) {
	for _, find := range finders {
		if b, ok := find(s); ok {
			return b, true
		}
	}
	return nil, false
}
