package cli

import (
	"context"
	"flag"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

var schemaCommand = command{
	name:    "schema",
	summary: "Print the JSON Schema of rule files, for editors.",
	help: `
Usage: tidegate schema

Prints the language of rule files as a JSON Schema (draft 2020-12). An editor that has it
completes words and underlines mistakes while you type. Every rule file that loads fits
the schema; tidegate lint finds more than it can say, such as names that nothing has.

In VS Code with the YAML extension, and in other editors with yaml-language-server, the
first line of a rule file names it:

  # yaml-language-server: $schema=rules.schema.json

Examples:
  tidegate schema > rules.schema.json`,
	setup: func(*flag.FlagSet) func(context.Context, Env, []string) int {
		return func(_ context.Context, env Env, args []string) int {
			if len(args) > 0 {
				return misused(env, "schema", "it takes no arguments, but there is %q", args[0])
			}
			return printJSON(env, rulefile.Schema())
		}
	},
}
