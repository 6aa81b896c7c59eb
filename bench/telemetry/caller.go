package main

import "unsafe"

// caller is the values of a request.
type caller struct{ user []byte }

// be makes it one of the users.
func (c *caller) be(n int) {
	n %= users
	for i := len(c.user) - 1; i >= len(c.user)-8; i-- {
		c.user[i] = byte('0' + n%10)
		n /= 10
	}
}

// Value implements [tidegate.Values].
func (c *caller) Value(name string) (string, bool) {
	switch name {
	case "ip", "addr":
		return "203.0.113.7", true
	case "header X-User":
		return c.name(), true
	}
	return "", false
}

func (c *caller) name() string { return unsafe.String(&c.user[0], len(c.user)) }
