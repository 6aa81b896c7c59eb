// Package systemtest tests package grpclimit with counters in a real Redis. It has nothing to
// import, and is apart from grpclimit so that its users do not get a Redis client in their go.sum.
package systemtest
