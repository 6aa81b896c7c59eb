// Package recipes tests the recipes of docs/frameworks.md with the frameworks themselves, and a
// cache around package client as in docs/outbound.md. It
// has nothing to import.
package recipes
