package diag

import "strings"

// Nearest returns the word of known that word is probably a misspelling of, for "did you mean"; ""
// if none is near. Of equally near words it returns the first.
func Nearest(word string, known []string) string {
	const longest = 64 // no word of ours is longer, and the table is quadratic
	if len(word) > longest {
		return ""
	}
	w := []rune(strings.ToLower(word))
	best, least := "", max(1, len(w)/3)+1
	for _, k := range known {
		if k == word || len(k) > longest {
			continue
		}
		r := []rune(strings.ToLower(k))
		// With a distance as long as the word, any word would be near.
		if d := distance(w, r); d < least && d < min(len(w), len(r)) {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many characters must be inserted, deleted, replaced or swapped with their
// neighbour to turn a into b.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
