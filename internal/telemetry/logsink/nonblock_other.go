//go:build !unix

package logsink

const nonblocking = 0
