package cli

import (
	"context"
	"flag"
	"maps"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/ruletest"
)

// schemas has the function that makes each schema, by the kind of file.
var schemas = map[string]func() map[string]any{"rules": rulefile.Schema, "tests": ruletest.Schema, "config": config.Schema}

var schemaCommand = command{
	name:    "schema",
	summary: "Print the JSON Schema of rule files, tests or the configuration, for editors.",
	help: `
Usage: tidegate schema [rules|tests|config]

Prints a JSON Schema (draft 2020-12): of rule files, which is the default, of tests
(*_test.yaml), or of the configuration (tidegate.yaml). An editor that has it completes
words and underlines mistakes while you type. Every file that can be used fits the schema;
tidegate lint, test and config find more than it can say, such as names that nothing has.

In VS Code with the YAML extension, and in other editors with yaml-language-server, the
first line of a file names it:

  # yaml-language-server: $schema=rules.schema.json

Examples:
  tidegate schema > rules.schema.json
  tidegate schema tests > tests.schema.json
  tidegate schema config > config.schema.json`,
	takes: takes{words: slices.Sorted(maps.Keys(schemas))},
	setup: func(*flag.FlagSet) func(context.Context, Env, []string) int {
		return func(_ context.Context, env Env, args []string) int {
			if len(args) == 0 {
				args = []string{"rules"}
			}
			schema := schemas[args[0]]
			if len(args) > 1 || schema == nil {
				return misused(env, "schema", "it takes one of %s, but there is %q", strings.Join(slices.Sorted(maps.Keys(schemas)), ", "), strings.Join(args, " "))
			}
			return printJSON(env, schema())
		}
	},
}
