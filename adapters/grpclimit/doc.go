// Package grpclimit limits the calls of a gRPC server, and teaches gRPC clients to wait.
//
// Start with [Limit], which counts calls by a key, or with [Gate], where rules say who and
// what. Both return a [Server], whose options go to grpc.NewServer:
//
//	lim := tidegate.New(memory.New(), tidegate.PerMinute(100))
//	server := grpc.NewServer(grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)
//
// A refused call gets RESOURCE_EXHAUSTED before its handler runs, with RetryInfo and
// QuotaFailure in its details, and grpc-retry-pushback-ms in its trailer. Clients with a
// retry policy in their service config obey that by themselves; [NewClient] is for those
// without.
//
// Keys, identities and headers are those of package httplimit, because a gRPC call is an
// HTTP request: its method is the path, as in "/shop.v1.Orders/Create", its metadata are
// the headers. The package decides nothing itself and does not authenticate.
package grpclimit
