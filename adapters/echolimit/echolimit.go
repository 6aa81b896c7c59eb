// Package echolimit lets version 4 of echo use the middleware of package httplimit:
//
//	e.Use(echolimit.Middleware(httplimit.Gate(gate)))
//
// Version 5 needs no adapter: its echo.WrapMiddleware does the same.
package echolimit

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Middleware returns limit, made by httplimit.Limit or httplimit.Gate, as middleware for
// echo. It is echo.WrapMiddleware, and the request gets the parameters and the path of the
// route, for httplimit.PathValue. Errors that handlers return are passed on, and counted by
// the status that echo answers them with.
func Middleware(limit func(http.Handler) http.Handler) echo.MiddlewareFunc {
	wrapped := echo.WrapMiddleware(limit)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		next = wrapped(next)
		return func(c echo.Context) error {
			values := c.ParamValues()
			for i, name := range c.ParamNames() {
				c.Request().SetPathValue(name, values[i])
			}
			c.Request().Pattern = c.Path()
			return next(c)
		}
	}
}
