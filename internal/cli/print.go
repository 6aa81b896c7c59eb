package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
)

func printJSON(env Env, v any) int {
	e := json.NewEncoder(env.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate:", err)
		return exitFound
	}
	return exitOK
}

// problemsOf returns what is wrong with a rule file that did not load.
func problemsOf(err error) diag.List {
	var load *rules.LoadError
	if errors.As(err, &load) {
		return load.Problems
	}
	var list diag.List
	if errors.As(err, &list) {
		return list
	}
	return diag.List{{Message: err.Error()}}
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	normal = "\x1b[0m"
)

// paint colours text where colours are welcome.
func (e *Env) paint(color, text string) string {
	if !e.Color {
		return text
	}
	return color + text + normal
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
