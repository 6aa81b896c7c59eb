package recipes

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"tidegate.dev/tidegate/adapters/ginlimit"
)

func init() { gin.SetMode(gin.TestMode) }

// right answers a right password.
func right(c *gin.Context) { c.Redirect(http.StatusSeeOther, "/") }

func ginLogin(wrong gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Query("password") != "right" {
			wrong(c)
			return
		}
		right(c)
	}
}

func TestGin(t *testing.T) {
	testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
		login := ginLogin(func(c *gin.Context) { c.JSON(http.StatusUnauthorized, gin.H{"error": "wrong password"}) })
		router := gin.New()
		router.Use(ginlimit.Middleware(limit))
		router.POST("/login", login)
		return router
	})
	testPathValue(t, func(limit middleware) http.Handler {
		report := func(c *gin.Context) { c.Status(http.StatusOK) }
		router := gin.New()
		router.Use(ginlimit.Middleware(limit))
		router.GET("/:tenant/report", report)
		return router
	})
}

var errWrong = errors.New("wrong password")

// ginAnswers are the ways in which gin answers 401.
var ginAnswers = map[string]gin.HandlerFunc{
	"JSON":                func(c *gin.Context) { c.JSON(401, gin.H{}) },
	"String":              func(c *gin.Context) { c.String(401, "no") },
	"Data":                func(c *gin.Context) { c.Data(401, "text/plain", nil) },
	"Status":              func(c *gin.Context) { c.Status(401) },
	"Status twice":        func(c *gin.Context) { c.Status(400); c.Status(401) },
	"Status, then JSON":   func(c *gin.Context) { c.Status(200); c.JSON(401, gin.H{}) },
	"AbortWithStatus":     func(c *gin.Context) { c.AbortWithStatus(401) },
	"AbortWithStatusJSON": func(c *gin.Context) { c.AbortWithStatusJSON(401, gin.H{}) },
	"AbortWithError":      func(c *gin.Context) { _ = c.AbortWithError(401, errWrong) },
	"http.Error":          func(c *gin.Context) { http.Error(c.Writer, "no", http.StatusUnauthorized) },
	"Error":               func(c *gin.Context) { _ = c.Error(errWrong) }, // answered by answerErrors
	"copied":              func(c *gin.Context) { c.Status(401); _, _ = io.Copy(c.Writer, http.NoBody); c.Writer.Flush() },
	"streamed": func(c *gin.Context) {
		c.Status(401)
		c.Stream(func(w io.Writer) bool { _, _ = w.Write([]byte("no")); return false })
	},
}

// answerErrors answers what handlers left to it, as gin's documentation proposes.
func answerErrors(c *gin.Context) {
	c.Next()
	if len(c.Errors) > 0 && !c.Writer.Written() {
		c.JSON(http.StatusUnauthorized, gin.H{"error": c.Errors.Last().Error()})
	}
}

func TestGinCountsEveryAnswer(t *testing.T) {
	for name, wrong := range ginAnswers {
		orders := map[string]func(limit middleware) []gin.HandlerFunc{
			"outside": func(limit middleware) []gin.HandlerFunc {
				return []gin.HandlerFunc{ginlimit.Middleware(limit), gin.Recovery(), answerErrors}
			},
			"inside": func(limit middleware) []gin.HandlerFunc {
				return []gin.HandlerFunc{gin.Recovery(), answerErrors, ginlimit.Middleware(limit)}
			},
		}
		for order, chain := range orders {
			t.Run(name+", limiter "+order, func(t *testing.T) {
				t.Parallel()
				testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
					router := gin.New()
					router.Use(chain(limit)...)
					router.POST("/login", ginLogin(wrong))
					return router
				})
			})
		}
		// The whole of gin is an http.Handler, too.
		t.Run(name+", around gin", func(t *testing.T) {
			t.Parallel()
			testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
				router := gin.New()
				router.Use(answerErrors)
				router.POST("/login", ginLogin(wrong))
				return limit(router)
			})
		})
	}
}

// What others wrap in gin by hand writes past the middleware.
func TestGinWrappedByHand(t *testing.T) {
	for name, wrong := range ginAnswers {
		if name == "Error" {
			continue // answered by nobody
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLogin(t, http.StatusSeeOther, func(limit middleware) http.Handler {
				router := gin.New()
				router.Use(func(c *gin.Context) {
					passed := false
					limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true; c.Next() })).ServeHTTP(c.Writer, c.Request)
					if !passed {
						c.Abort()
					}
				})
				router.POST("/login", ginLogin(wrong))
				return router
			})
		})
	}
}
