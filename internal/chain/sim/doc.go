// Package sim runs a whole fleet in virtual time: the real code of a node, with its queue and
// its heartbeats, many times over, in front of a simulated Redis and network in which anything
// can go wrong. Afterwards it holds what was admitted to the promises of the documentation.
//
// It is for what neither a test of one node nor three real processes show: any number of
// nodes, any latency, clocks that differ, and millions of decisions. It does not run Lua, sockets or
// front ends; make chaos does that with the real ones.
//
// Start with [Scenario] and [Run]; [Random] makes a scenario from a seed.
package sim
