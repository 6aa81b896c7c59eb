package redis

import "tidegate.dev/tidegate"

// Server is for package fleet: the number of the server that a counter lives on.
func (s *Store) Server(*tidegate.Limit, string) int { return 0 }

// Servers is for package fleet: the names of all servers, by number.
func (s *Store) Servers() []string { return lone }

var lone = []string{"Redis"}
