package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// respCommand is what is asked over RESP, about one key.
type respCommand struct {
	words []string // before and after the key, which is in place of ""
	lines int      // of a reply
	reply []byte   // how each reply begins
}

var (
	incr = respCommand{words: []string{"INCR", ""}, lines: 1, reply: []byte(":")}
	// 100,000 a day: a limit that is not used up in a run, so that every decision charges its
	// key, and not so wide that a key is as good as new before its next turn.
	throttle = respCommand{words: []string{"CL.THROTTLE", "", "99999", "100000", "86400"}, lines: 6, reply: []byte("*5\r\n:0\r\n:100000\r\n")}
)

const (
	keys  = 10_000  // that are asked about
	draws = 1 << 14 // of keys, made before a heat: choosing them is no part of it
)

// append adds the command about a key, as clients send it.
func (c respCommand) append(to []byte, key string) []byte {
	to = fmt.Appendf(to, "*%d\r\n", len(c.words))
	for _, word := range c.words {
		if word == "" {
			word = key
		}
		to = fmt.Appendf(to, "$%d\r\n%s\r\n", len(word), word)
	}
	return to
}

// batches are commands about keys drawn at random, depth of them in each.
func (c respCommand) batches(depth int) [][]byte {
	var all [][]byte
	for range draws / depth {
		var b []byte
		for range depth {
			b = c.append(b, fmt.Sprintf("key:%06d", rand.IntN(keys)))
		}
		all = append(all, b)
	}
	return all
}

// whole reports whether replies are the whole replies to depth commands.
func (c respCommand) whole(replies []byte, depth int) bool {
	return bytes.Count(replies, newline) >= depth*c.lines
}

// wrong returns how many of the replies to depth commands are not what they should be.
func (c respCommand) wrong(replies []byte, depth int) int {
	n := bytes.Count(replies, newline)
	return max(n-depth*c.lines, depth*c.lines-n, depth-bytes.Count(replies, c.reply))
}

var newline = []byte("\n")
