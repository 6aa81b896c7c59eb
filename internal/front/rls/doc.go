// Package rls speaks Envoy's rate limit service, version 3, as envoyproxy/ratelimit does:
// ShouldRateLimit over gRPC, health and reflection, and over HTTP /json, /healthcheck and
// /rlconfig. Descriptors of a domain that has a file of package rules/envoy are held to the
// rules of that file. Each descriptor of any other domain is put to the native rules as a request.
//
//	message → call: bounds → rules by descriptor → replaced ones left out → store → statuses
//
// It opens no store and reads no file: [Options] has both. Start with [New].
package rls
