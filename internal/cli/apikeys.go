package cli

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/apikey"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
)

var apiKeysCommand = command{
	name:    "api-keys",
	summary: "Make, revoke and list the API keys that rules know callers by.",
	help: `
Usage: tidegate api-keys add    [FLAGS] NAME [ATTRIBUTE=VALUE...]
       tidegate api-keys revoke [FLAGS] NAME
       tidegate api-keys list   [FLAGS]

add makes a key, prints it this one time, and writes its SHA-256, its name and its
attributes into the file; with --stdin it takes a key that you have. revoke removes the
key of that name. A running gateway follows the file: both take effect within a second.
list shows names, attributes and when keys were made. The keys themselves are nowhere.

The file is --file, or trust.api_keys.file of the configuration.

Examples:
  tidegate api-keys add acme plan=pro
  tidegate api-keys add --stdin acme plan=pro < key.txt
  tidegate api-keys revoke acme
  tidegate api-keys list --file api-keys.csv --json`,
	takes: takes{words: []string{"add", "revoke", "list"}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o apiKeysOptions
		flags.StringVar(&o.file, "file", "", "`FILE` of API keys")
		flags.StringVar(&o.config, "config", "", "configuration `FILE` that names the file of keys (default that of serve)")
		flags.StringVar(&o.config, "c", "", "short for --config `FILE`")
		flags.BoolVar(&o.stdin, "stdin", false, "add the key on standard input, instead of a new one")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

type apiKeysOptions struct {
	file, config string
	stdin, json  bool
	rules        []string // files, as layers; none if they are not known
}

func (o *apiKeysOptions) run(_ context.Context, env Env, args []string) int {
	verbs := map[string]func(Env, []string) error{"add": o.add, "revoke": o.revoke, "list": o.list}
	if len(args) == 0 || verbs[args[0]] == nil {
		return misused(env, "api-keys", "say what to do: tidegate api-keys add, revoke or list")
	}
	if err := o.find(env); err != nil {
		return misused(env, "api-keys", "%v", err)
	}
	err := verbs[args[0]](env, args[1:])
	var use usageError
	var wrong diag.List
	switch {
	case errors.As(err, &use):
		return misused(env, "api-keys", "%v", err)
	case errors.As(err, &wrong):
		wrong.Write(env.Stderr, false)
		return exitFound
	case err != nil:
		fmt.Fprintln(env.Stderr, "tidegate api-keys:", err)
		return exitFound
	}
	return exitOK
}

// usageError is a mistake in how the command was called.
type usageError string

func (e usageError) Error() string { return string(e) }

// find finds the file, and the rules that use it, if they are known.
func (o *apiKeysOptions) find(env Env) error {
	if o.file != "" && o.config == "" {
		return nil
	}
	c, problems := config.Load(config.Options{File: o.config, Stat: stat, OwnRules: true})
	if c == nil {
		problems.Write(env.Stderr, false)
		return errors.New("the configuration cannot be used; name the file with --file")
	}
	if o.file == "" {
		o.file = c.Trust.APIKeys.File
	}
	if o.file == "" {
		return errors.New("which file? name it with --file, or in trust.api_keys.file of the configuration")
	}
	if !c.HasSource() {
		o.rules = c.Rules
	}
	return nil
}

// stat reports a missing file as one that is there and no folder: add creates the first one.
func stat(name string) (fs.FileInfo, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return absentFile{}, nil
	}
	return info, err
}

type absentFile struct{ fs.FileInfo }

func (absentFile) IsDir() bool       { return false }
func (absentFile) Mode() fs.FileMode { return fs.ModeIrregular }

func (o *apiKeysOptions) add(env Env, args []string) error {
	if len(args) == 0 || strings.TrimSpace(args[0]) == "" {
		return usageError("name the key, as in tidegate api-keys add acme plan=pro")
	}
	var attributes []apikey.Attribute
	for _, arg := range args[1:] {
		column, value, ok := strings.Cut(arg, "=")
		if !ok || column == "" || column == "name" || column == "sha256" {
			return usageError(fmt.Sprintf("%q is not an attribute: write ATTRIBUTE=VALUE, as in plan=pro", arg))
		}
		attributes = append(attributes, apikey.Attribute{Column: column, Value: value})
	}
	key := apikey.New()
	if o.stdin {
		var err error
		if key, err = readKey(env.Stdin); err != nil {
			return err
		}
	}
	name := strings.TrimSpace(args[0])
	if err := apikey.Add(o.file, key, name, time.Now(), attributes); err != nil {
		return err
	}
	switch {
	case o.json && o.stdin:
		printJSON(env, map[string]string{"name": name, "file": o.file})
	case o.json:
		printJSON(env, map[string]string{"name": name, "file": o.file, "key": key})
	case o.stdin:
		fmt.Fprintf(env.Stderr, "%s is in %s\n", name, o.file)
	default:
		fmt.Fprintln(env.Stdout, key)
		fmt.Fprintf(env.Stderr, "%s is in %s. This is the only time that its key is shown.\n", name, o.file)
	}
	return nil
}

// shortestKey is the minimum length of a key that was not made here.
const shortestKey = 16

func readKey(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, apikey.MaxKey+2)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read the key: %w", err)
	}
	key := strings.TrimSpace(line)
	switch {
	case len(key) < shortestKey:
		return "", fmt.Errorf("the key on standard input has %d characters, and one below %d can be guessed", len(key), shortestKey)
	case len(key) > apikey.MaxKey:
		return "", fmt.Errorf("the key on standard input is longer than %d characters", apikey.MaxKey)
	}
	return key, nil
}

func (o *apiKeysOptions) revoke(env Env, args []string) error {
	if len(args) != 1 {
		return usageError("name one key, as in tidegate api-keys revoke acme")
	}
	if err := apikey.Revoke(o.file, args[0]); err != nil {
		return err
	}
	if o.json {
		printJSON(env, map[string]any{"name": args[0], "file": o.file, "then": o.then()})
		return nil
	}
	fmt.Fprintf(env.Stdout, "%s is revoked: a gateway that follows %s does not know the key any more within a second\n", args[0], o.file)
	for _, text := range o.then() {
		fmt.Fprintln(env.Stdout, "requests with it:", text)
	}
	return nil
}

// then returns what happens to requests whose key is revoked, by the rules that are known.
func (o *apiKeysOptions) then() []string {
	if len(o.rules) == 0 {
		return []string{}
	}
	set, err := rules.LoadLayers(onDisk(o.rules), rules.Config{MergeDomains: true})
	if err != nil {
		return []string{}
	}
	return append([]string{}, set.WithoutAPIKey()...)
}

// listed is a key in the output of list.
type listed struct {
	Name       string            `json:"name"`
	Created    string            `json:"created,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

func (o *apiKeysOptions) list(env Env, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("list takes no arguments, but got %q", args[0]))
	}
	t, err := apikey.ReadFile(o.file)
	if err != nil {
		return err
	}
	columns := t.Attributes()
	all := []listed{}
	for _, r := range t.Rows() {
		l := listed{Name: r.Name, Created: r.Created(), Attributes: make(map[string]string)}
		for _, c := range columns {
			if v := r.Attribute(c); v != "" {
				l.Attributes[c] = v
			}
		}
		all = append(all, l)
	}
	if o.json {
		printJSON(env, all)
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.TrimRight("NAME\tCREATED\t"+strings.ToUpper(strings.Join(columns, "\t")), "\t"))
	for _, l := range all {
		cells := []string{l.Name, l.Created}
		for _, c := range columns {
			cells = append(cells, l.Attributes[c])
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return w.Flush()
}
