package config

import (
	"net/url"
	"strconv"
	"strings"
)

// upstream is the URL of a server to pass requests to.
var upstream = codec[*url.URL]{read: readUpstream, write: (*url.URL).String}

func readUpstream(w rawValue) (*url.URL, mistake) {
	if strings.HasPrefix(w.text, unixPrefix) {
		return nil, advised("is a socket, and upstreams are reached by TCP only: "+quote(w.text), "")
	}
	if !strings.Contains(w.text, "://") {
		return nil, wrong("has no scheme: "+quote(w.text), "http://"+strings.TrimLeft(w.text[strings.LastIndex(w.text, "@")+1:], "/"))
	}
	if strings.Contains(w.text, ",") {
		return nil, advised("has a comma: "+quote(w.text), "write several as a list, `[http://127.0.0.1:9000, http://127.0.0.1:9001]`, and a comma in a path as %2C")
	}
	u, err := url.Parse(w.text)
	if err != nil {
		return nil, advised("is not a valid URL: "+quote(w.text), "")
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host}
	switch {
	case u.Scheme == "ws" || u.Scheme == "wss":
		base.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
		return nil, wrong("has a scheme that only clients write: "+quote(w.text), base.String())
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, advised("has the unknown scheme "+quote(u.Scheme), "upstreams are `http://` or `https://`")
	case u.Hostname() == "":
		return nil, advised("has no host: "+quote(w.text), "")
	case u.User != nil:
		return nil, advised("has a user or a password: "+quote(w.text), "write "+quote(base.String())+"; clients bring what identifies them")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(w.text, "#"):
		base.Path = u.Path
		return nil, wrong("has a query or a fragment, which are the request's own: "+quote(w.text), base.String())
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, advised("has no port from 1 to 65535: "+quote(w.text), "")
		}
	}
	u.Host = strings.ToLower(u.Host)
	if u.Path == "/" {
		u.Path = "" // the same, so that it is not given twice
	}
	return u, mistake{}
}

// portOf returns the port of u: its own, or that of its scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
