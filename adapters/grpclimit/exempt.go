package grpclimit

import "strings"

// Infrastructure reports whether a method belongs to the services that keep a server
// running: health checks and reflection. Such methods are exempt by default, because a load balancer
// whose health check is refused would take the server for dead. So on a server that strangers can
// reach, reflection is not limited: do not register it there.
func Infrastructure(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") ||
		strings.HasPrefix(method, "/grpc.reflection.v1.ServerReflection/") ||
		strings.HasPrefix(method, "/grpc.reflection.v1alpha.ServerReflection/")
}
