package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/ruletest"
)

// lookEvery is how often a watching command looks for changes.
const lookEvery = 300 * time.Millisecond

// runWatching runs the tests whenever one of their files changes, until ctx ends.
func (o *testOptions) runWatching(ctx context.Context, env Env, args []string) int {
	seen, code := "", exitOK
	for {
		if now := stamp(args); now != seen {
			if seen != "" {
				fmt.Fprintf(env.Stdout, "\n%s changed\n", time.Now().Format(time.TimeOnly))
			}
			seen = now
			code = o.runAll(ctx, env, args)
		}
		select {
		case <-ctx.Done():
			return code
		case <-time.After(lookEvery):
		}
	}
}

// stamp returns a text that changes when one of the test files, or what they read, does.
func stamp(tests []string) string {
	var b strings.Builder
	var files []string
	for _, arg := range tests {
		stampFile(&b, arg)
		names, _ := testFiles(arg)
		files = append(files, names...)
	}
	for _, name := range files {
		stampFile(&b, name)
		test, _ := ruletest.Read(name)
		if test == nil {
			continue
		}
		for _, rules := range slices.Concat(test.Layers, test.Reloads) {
			stampFile(&b, rules)
			if file, _ := rulefile.Read(rules, rulefile.Options{}); file != nil {
				for _, name := range file.Files {
					stampFile(&b, name)
				}
			}
		}
	}
	return b.String()
}

func stampFile(b *strings.Builder, name string) {
	_ = filepath.WalkDir(name, func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil {
			fmt.Fprintf(b, "%s gone\n", path)
			return nil
		}
		fmt.Fprintf(b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
}
