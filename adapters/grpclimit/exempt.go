package grpclimit

import "strings"

// Infrastructure reports whether a method belongs to the services that keep a server
// running: health checks and reflection. A load balancer that is refused would take the
// server for dead. Do not register reflection on a server for strangers.
func Infrastructure(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") ||
		strings.HasPrefix(method, "/grpc.reflection.v1.ServerReflection/") ||
		strings.HasPrefix(method, "/grpc.reflection.v1alpha.ServerReflection/")
}
