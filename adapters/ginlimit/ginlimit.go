// Package ginlimit lets gin use the middleware of package httplimit:
//
//	router.Use(ginlimit.Middleware(httplimit.Gate(gate)))
//
// Start with [Middleware]. It is more than calling the one from the other, because handlers
// of gin write to a writer of gin's own, which keeps the status back until something is
// written. Package httplimit has to see the status where a rule counts by it, and a hijacked
// connection where a request holds a slot.
package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// Middleware returns limit, made by httplimit.Limit or httplimit.Gate, as middleware for
// gin. A refused request is aborted.
//
// Call it before middleware that turns errors into answers: what is answered after limit has
// returned is counted only if it goes through the writer of the context.
//
// The request gets the parameters and the path of the route, for httplimit.PathValue.
func Middleware(limit func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, p := range c.Params {
			c.Request.SetPathValue(p.Key, p.Value)
		}
		c.Request.Pattern = c.FullPath()
		admitted := false
		limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admitted = true
			c.Request = r
			if w != http.ResponseWriter(c.Writer) {
				c.Writer = &writer{ResponseWriter: c.Writer, through: w}
			}
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !admitted {
			c.Abort()
		}
	}
}
