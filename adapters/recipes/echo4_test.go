package recipes

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"

	"tidegate.dev/tidegate/adapters/echolimit"
)

func echo4Login(wrong echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.QueryParam("password") != "right" {
			return wrong(c)
		}
		return c.Redirect(http.StatusSeeOther, "/")
	}
}

func TestEcho4(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		login := echo4Login(func(echo.Context) error { return echo.ErrUnauthorized })
		e := echo.New()
		e.Use(echolimit.Middleware(limit))
		e.POST("/login", login)
		return e
	})
	testPathValue(t, func(limit middleware) http.Handler {
		report := func(c echo.Context) error { return c.NoContent(http.StatusOK) }
		e := echo.New()
		e.Use(echolimit.Middleware(limit))
		e.GET("/:tenant/report", report)
		return e
	})
}

// echo4Answers are the ways in which echo answers 401.
var echo4Answers = map[string]echo.HandlerFunc{
	"ErrUnauthorized": func(echo.Context) error { return echo.ErrUnauthorized },
	"NewHTTPError":    func(echo.Context) error { return echo.NewHTTPError(401, "no") },
	"error":           func(echo.Context) error { return errWrong }, // answered by answerError4
	"JSON":            func(c echo.Context) error { return c.JSON(401, "no") },
	"String":          func(c echo.Context) error { return c.String(401, "no") },
	"NoContent":       func(c echo.Context) error { return c.NoContent(401) },
	"Error":           func(c echo.Context) error { c.Error(echo.ErrUnauthorized); return nil },
	"http.Error":      func(c echo.Context) error { http.Error(c.Response(), "no", http.StatusUnauthorized); return nil },
}

func answerError4(e *echo.Echo) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if errors.Is(err, errWrong) {
			_ = c.JSON(http.StatusUnauthorized, err.Error())
			return
		}
		e.DefaultHTTPErrorHandler(err, c)
	}
}

func TestEcho4CountsEveryAnswer(t *testing.T) {
	around := map[string][]echo.MiddlewareFunc{
		"alone":          nil,
		"Recover":        {echomiddleware.Recover()},
		"ContextTimeout": {echomiddleware.ContextTimeout(10 * time.Second)},
		"Gzip":           {echomiddleware.Gzip()},
	}
	for name, wrong := range echo4Answers {
		for others, outer := range around {
			for wrapper, wrap := range map[string]func(middleware) echo.MiddlewareFunc{
				"echolimit": echolimit.Middleware, "WrapMiddleware": func(m middleware) echo.MiddlewareFunc { return echo.WrapMiddleware(m) },
			} {
				t.Run(name+", "+others+", "+wrapper, func(t *testing.T) {
					t.Parallel()
					testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
						e := echo.New()
						e.HTTPErrorHandler = answerError4(e)
						e.Use(outer...)
						e.Use(wrap(limit))
						e.POST("/login", echo4Login(wrong))
						return e
					})
				})
			}
		}
	}
}
