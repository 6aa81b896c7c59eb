// Package rls speaks Envoy's rate limit service, version 3, as envoyproxy/ratelimit does:
// ShouldRateLimit over gRPC, health and reflection, and over HTTP /json, /healthcheck and
// /rlconfig. Descriptors of a domain that a file of package rules/envoy has are held to its
// rules. Each descriptor of any other domain is a request to the native rules.
//
//	message → call: bounds → rules by descriptor → replaced ones left out → store → statuses
//
// It knows no store, and no file: [Options] has functions for both. Start with [New].
package rls
