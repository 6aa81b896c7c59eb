package grpclimit

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"tidegate.dev/tidegate"
)

// methodMessage is the method of the request that a Gate is asked about for a message.
const methodMessage = "MESSAGE"

var post = &http.Request{Method: http.MethodPost, Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody}

// newRequest returns the call as the HTTP request that it is, without its headers: see
// readMetadata.
func newRequest(ctx context.Context, method string) *http.Request {
	caller, known := peer.FromContext(ctx)
	if known && caller.LocalAddr != nil && caller.LocalAddr.Network() == "unix" {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, caller.LocalAddr) // for ClientIP.TrustUnix
	}
	r := post.WithContext(ctx)
	r.URL = &url.URL{Path: method}
	if host := metadata.ValueFromIncomingContext(ctx, ":authority"); len(host) == 1 {
		r.Host = host[0]
	}
	if !known {
		return r
	}
	if caller.Addr != nil {
		r.RemoteAddr = caller.Addr.String()
	}
	if secured, ok := caller.AuthInfo.(credentials.TLSInfo); ok {
		r.TLS = &secured.State
	}
	return r
}

// readMetadata sets the headers of r to the metadata of the call, unless it has done so.
func readMetadata(r *http.Request) {
	if r.Header != nil {
		return
	}
	md, _ := metadata.FromIncomingContext(r.Context()) // a copy
	delete(md, ":authority")
	rename(md, textproto.CanonicalMIMEHeaderKey)
	r.Header = http.Header(md)
	if md == nil {
		r.Header = http.Header{}
	}
}

// rename spells the names in m anew. What spell has spelled it must not change: the loop may see
// it again.
func rename(m map[string][]string, spell func(string) string) {
	for name, lines := range m {
		if spelled := spell(name); spelled != name {
			delete(m, name)
			m[spelled] = lines
		}
	}
}

// values looks up the attributes of a call. The metadata are copied when a rule first asks for
// something that is in them.
type values struct {
	tidegate.Values // of the request
	request         *http.Request
	believes        bool
}

// Value implements [tidegate.Values].
func (v *values) Value(name string) (string, bool) {
	if key, ok := strings.CutPrefix(name, "metadata "); ok {
		name = "client header " + key
	}
	if v.believes || !isOfPeer(name) {
		readMetadata(v.request)
	}
	return v.Values.Value(name)
}

// isOfPeer reports whether an attribute is that of the connection.
func isOfPeer(name string) bool {
	return name == "ip" || name == "addr" || name == "tls.client_cn" || strings.HasPrefix(name, "ip ")
}
