// Package recipes tests the recipes of docs/frameworks.md with the frameworks themselves. It
// has nothing to import.
package recipes
