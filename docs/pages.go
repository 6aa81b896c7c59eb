// Package docs has the pages of the documentation that the program shows itself.
package docs

import "embed"

// Lint has the page of each check of tidegate lint, lint/NAME.md.
//
//go:embed lint/*.md
var Lint embed.FS
