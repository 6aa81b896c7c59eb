package main

import "math/rand/v2"

// garbleEvery is how many pieces of what Redis answers there are to one that is changed.
// A piece is what one read finds: an answer, or some.
const garbleEvery = 40

// garble changes a piece as the mood says, now and then.
func garble(is mood, piece []byte) []byte {
	if is < surplus || rand.IntN(garbleEvery) > 0 {
		return piece
	}
	switch is {
	case surplus:
		return append(piece, "+OK\r\n"...)
	case flipped:
		piece[rand.IntN(len(piece))] ^= 1 << rand.IntN(8)
	case truncated:
		return piece[:rand.IntN(len(piece))]
	case doubled:
		return append(piece, piece...)
	}
	return piece
}
