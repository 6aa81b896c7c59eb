// Package envoyfiles has tests only: of the files in deploy/envoy, with the types of
// go-control-plane, and of the settings in docs/envoy.md.
package envoyfiles
