// Package client is for programs that are limited: it keeps the calls of an HTTP client
// under the limits of somebody else's API.
//
// Start with [Transport], an http.RoundTripper for any http.Client. Its zero value waits as
// long as a server asks for, up to [DefaultMaxWait], retries what is worth a retry, and slows
// down before a limit that the server's headers announce is used up:
//
//	api := &http.Client{Transport: &client.Transport{}}
//
// A [Provider] shares the limits of an API among all instances of a program, through a
// [tidegate.Store]: calls per second, calls at a time, budgets per day and month, tokens of
// language models. A refusal that names a time stops all instances until then.
//
// This package answers nobody and limits no server; see package httplimit for that.
package client
