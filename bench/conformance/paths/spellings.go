package main

import (
	"math/rand/v2"
	"strings"
)

// routes are what the servers serve and what rules are about.
var routes = []string{"denied", "limited", "exempt"}

// leads come before the name of a route. Each is a way to hide it, or to make it
// look like something below another path.
var leads = []string{
	"/", "//", "///", "/x//", "/x///", "//x/", "//x/y/", "//x//", "//example.com/", "//u@h/", "//h:80/", "//[::1]/", "//:0/", "//@/", "//x:/",
	"/./", "/././", "/x/../", "/x/./../", "/x//../", "/../", "/../../", "/x/y/../../", "/.//", "//./", "/..//", "//..//", "/x/..//",
	"/%2e/", "/x/%2e%2e/", "/x/.%2e/", "/x/%2E./", "/%2e%2e/", "/x/%252e%252e/", "/%252e/", "/x/%25252e%25252e/",
	"/;/", "/;a/", "/;a=b/", "/;a;b/", "/;a//", "//;a/", "/x;a/../", "/x/..;/", "/x/..;a/", "/x/..;a=b/", "/x/.;/../", "/.;/", "/.;a/", "/..;/", "/x;/..;/",
	"/x;a/y;b/..;c/..;d/", "/x/;a/../../", "/x/;/..;/..;/", "/...;/", "/x/%2e%2e;/", "/x/%2e%2e;a/", "/x/..%3b/", "/x/..%3ba/", "/%3b/", "/%3ba/", "/x%3ba/../",
	"/x/..;%2f", "/x;%2f../", "/;%2f", "/;a%2fb/", "/x/..;%2e/", "/;a%3bb/", "/x/..%3b;/",
	"/%2f", "/%2F", "/x%2f", "/%2f%2f", "/%2fx/", "/x%2f..%2f", "/x/..%2f", "/x%2f../", "/x%2f%2e%2e%2f", "/x%2f..;%2f", "/x%252f..%252f", "/%252f", "/%2f;a/", "%2f", "%2f%2fx/",
	`/\`, `\`, `/\x/`, `\\x/`, `/x\`, `/x\..\`, `/x/..\`, `/x\../`, "/%5c", "/%5C", "/x%5c", "/%5cx/", "/x%5c..%5c", "/x/..%5c", "/x%5c../", "/x%5c..;%5c", "/x/..;%5c", `/;a\`, "/%255c", "/%5c%5cx/", "/%5c%2fx/",
	"/%00/", "/x%00/../", "/%09/", "/%0a/", "/%0d/", "/%20/", "/%20", "/ ", "/\t", "/%7f/", "/+/../", "/x/.. /", "/x/..%20/", "/x/..%09/",
	"/%c0%ae%c0%ae/", "/x/%c0%ae%c0%ae/", "/%c0%af", "/x/..%c0%af", "/%e0%80%af", "/%f0%80%80%af", "/%ff/", "/%u002e%u002e/", "/%u002f", "/%ef%bc%8f", "/x/%ef%bc%8e%ef%bc%8e/", "/%e2%80%a5/",
	"http://example.com/", "http://example.com//", "http://example.com//x/", "http://other.example/", "HTTP://example.com/", "https://example.com/", "http://u@example.com/", "http:///", "http:/", "http:", "ftp://example.com/", "//example.com:80/", "/http://example.com/", "http://example.com;a/", "http://example.com/;a/",
	"", "*", "*/", "/*/", "/*;/..;/", "?/", "/?/", "/?/../", "/x?y=/", "/x?/../", "/#/../", "/#/", "/%23/../", "/x%3f/../", "/%3f/", "/x#/../",
	"/~/", "/x,a/../", "/x/..,/", "/x=1/../", "/x&/../", "/x:/../", "/:/", "/@/../", "/!/", "/$/../", "/x/.. ;/",
}

// ends come behind it.
var ends = []string{
	"", "/", "/x", "/x/", "//", "//x", "/x//y", "/.", "/..", "/./x", "/x/..", "/x/../y", "/%2e", "/%2e%2e", "/%2e/x", "/...", ".", "..", "%2e", "%2e%2e",
	";", ";a", ";a=b", ";a/x", ";/x", ";a;b/x", "/;a", "/;a/x", "/x;a", "/x;a/..;b/y", ";a/..;/x", "/x/..;", "/x/..;/y", "/..;", "/..;/x", "%3b", "%3ba", "%3ba/x", "%3b/x", "/%3ba", ";%2fx", ";a%2f..%2fx", ";..", ";/..", ";/../x", ";a%3bb/x", ";a,b/x", ";jsessionid=1/x",
	"%2f", "%2fx", "%2Fx", "%2f%2fx", "%2f..%2fx", "/x%2f..%2f..%2fy", "%252fx", "%5c", "%5cx", "%5Cx", `\`, `\x`, `\..\x`, "%5c..%5cx", "%255cx",
	"?", "?a", "?a=b", "?/x", "?/../x", "?a;b", "?a b", "?a\tb", "?a#b", "?%00", "??", "#", "#a", "#/x", "%23", "%23a", "%3f", "%3fa",
	"%00", "%00/x", "%09", "%0a", "%0d%0a", "%20", "%20/x", "/%20", " ", "/x y", "+", "%7f", "%ff", "%c0%af", "%c0%afx", "%c0%ae%c0%ae/", "%u002fx", "%ef%bc%8fx", "%", "%2", "%zz",
	"~", ",a", "=a", "&a", ":80", "@x", "!", "'", "(", "*", "|x", "{x}", "^", "`", `"`, "<", "[x]", "/x.html", ".html", "x", "/\xc3\xa4", "/%c3%a4", "/\xff",
}

// names are spellings of the name itself.
func names(route string) []string {
	first, rest := route[:1], route[1:]
	hex := func(s string) string {
		const digits = "0123456789abcdef"
		return "%" + string(digits[s[0]>>4]) + string(digits[s[0]&15])
	}
	return []string{
		route, hex(first) + rest, first + hex(rest[:1]) + rest[1:], strings.ToUpper(hex(first)) + rest, "%25" + hex(first)[1:] + rest,
		strings.ToUpper(route), strings.ToUpper(first) + rest, hex(strings.ToUpper(first)) + rest, first + strings.ToUpper(rest),
	}
}

// random is how many spellings are drawn besides those of the lists.
const random = 500

// spellings returns the request targets that the servers are asked for, always the same.
func spellings() []string {
	var all []string
	for _, route := range routes {
		for _, lead := range leads {
			all = append(all, lead+route+"/x")
		}
		for _, end := range ends {
			all = append(all, "/"+route+end)
		}
		for _, name := range names(route) {
			all = append(all, "/"+name, "/"+name+"/x", "/"+name+";a/x", "/;a/"+name)
		}
	}
	// What is let off, and what is not, in one path.
	for _, lead := range leads {
		all = append(all, "/exempt"+lead+"denied/x", "/denied"+lead+"exempt/x", "/exempt"+lead+"limited/x", "/limited"+lead+"exempt/x")
	}
	r := rand.New(rand.NewPCG(11, 7))
	draw := func(words []string) string { return words[r.IntN(len(words))] }
	for range random {
		var b strings.Builder
		for range 1 + r.IntN(2) {
			if r.IntN(2) == 0 {
				b.WriteString(strings.TrimSuffix(draw(leads), "/"))
			}
			b.WriteString("/" + draw(names(draw(routes))) + draw(ends))
		}
		all = append(all, b.String())
	}
	return all
}
