package recipes

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	echomiddleware "github.com/labstack/echo/v5/middleware"
)

func echoLogin(wrong echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if c.QueryParam("password") != "right" {
			return wrong(c)
		}
		return c.Redirect(http.StatusSeeOther, "/")
	}
}

func TestEcho(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		login := echoLogin(func(*echo.Context) error { return echo.ErrUnauthorized })
		e := echo.New()
		e.Use(echo.WrapMiddleware(limit))
		e.POST("/login", login)
		return e
	})
	testPathValue(t, func(limit middleware) http.Handler {
		report := func(c *echo.Context) error { return c.NoContent(http.StatusOK) }
		e := echo.New()
		e.Use(echo.WrapMiddleware(limit))
		e.GET("/:tenant/report", report)
		return e
	})
}

// echoAnswers are the ways in which echo answers 401.
var echoAnswers = map[string]echo.HandlerFunc{
	"ErrUnauthorized": func(*echo.Context) error { return echo.ErrUnauthorized },
	"NewHTTPError":    func(*echo.Context) error { return echo.NewHTTPError(401, "no") },
	"error":           func(*echo.Context) error { return errWrong }, // answered by answerError
	"JSON":            func(c *echo.Context) error { return c.JSON(401, "no") },
	"String":          func(c *echo.Context) error { return c.String(401, "no") },
	"NoContent":       func(c *echo.Context) error { return c.NoContent(401) },
	"Blob":            func(c *echo.Context) error { return c.Blob(401, "text/plain", nil) },
	"http.Error":      func(c *echo.Context) error { http.Error(c.Response(), "no", http.StatusUnauthorized); return nil },
}

func answerError(c *echo.Context, err error) {
	if errors.Is(err, errWrong) {
		_ = c.JSON(http.StatusUnauthorized, err.Error())
		return
	}
	echo.DefaultHTTPErrorHandler(false)(c, err)
}

func TestEchoCountsEveryAnswer(t *testing.T) {
	around := map[string][]echo.MiddlewareFunc{
		"alone":               nil,
		"Recover":             {echomiddleware.Recover()},
		"ContextTimeout":      {echomiddleware.ContextTimeout(10 * time.Second)},
		"Gzip":                {echomiddleware.Gzip()},
		"RequestID and Gzip":  {echomiddleware.RequestID(), echomiddleware.Gzip()},
		"Timeout and Recover": {echomiddleware.ContextTimeout(10 * time.Second), echomiddleware.Recover()},
	}
	for name, wrong := range echoAnswers {
		for others, outer := range around {
			t.Run(name+", "+others, func(t *testing.T) {
				t.Parallel()
				testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
					e := echo.New()
					e.HTTPErrorHandler = answerError
					e.Use(outer...)
					e.Use(echo.WrapMiddleware(limit))
					e.POST("/login", echoLogin(wrong))
					return e
				})
			})
		}
		t.Run(name+", around echo", func(t *testing.T) {
			t.Parallel()
			testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
				e := echo.New()
				e.HTTPErrorHandler = answerError
				e.POST("/login", echoLogin(wrong))
				return limit(e)
			})
		})
	}
}
