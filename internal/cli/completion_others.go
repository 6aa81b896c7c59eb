package cli

import (
	"fmt"
	"strings"
)

// zshCompletion returns a file for a folder in fpath.
func zshCompletion(all []completion) string {
	var b strings.Builder
	b.WriteString("#compdef tidegate\n# Completion of tidegate for zsh, written by: tidegate completion zsh\n\n_tidegate() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\t\t%s\n", zshQuote(strings.ReplaceAll(c.name, ":", `\:`)+":"+c.summary))
	}
	b.WriteString("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\t%s)\n\t\t_arguments -S", c.name)
		for _, f := range c.flags {
			fmt.Fprintf(&b, " \\\n\t\t\t%s", zshQuote(zshFlag(f)))
		}
		switch {
		case len(c.takes.words) > 0:
			fmt.Fprintf(&b, " \\\n\t\t\t%s", zshQuote("1:argument:("+strings.Join(c.takes.words, " ")+")"))
		case len(c.takes.endings) > 0:
			fmt.Fprintf(&b, " \\\n\t\t\t%s", zshQuote(`*:file:_files -g "*(`+strings.Join(c.takes.endings, "|")+`)"`))
		}
		b.WriteString("\n\t\t;;\n")
	}
	b.WriteString("\tesac\n}\n\nif [[ $funcstack[1] == _tidegate ]]; then\n\t_tidegate \"$@\"\nelse\n\tcompdef _tidegate tidegate\nfi\n")
	return b.String()
}

func zshFlag(f completedFlag) string {
	plain := strings.NewReplacer("[", "(", "]", ")", ":", " -").Replace
	spec := "--" + f.name
	if f.value == "" {
		return spec + "[" + plain(f.help) + "]"
	}
	action := " "
	switch {
	case len(f.words) > 0:
		action = "(" + strings.Join(f.words, " ") + ")"
	case f.file:
		action = "_files"
	}
	return spec + "=[" + plain(f.help) + "]:" + f.value + ":" + action
}

func zshQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fishCompletion returns a file for the folder completions.
func fishCompletion(all []completion) string {
	var b strings.Builder
	b.WriteString("# Completion of tidegate for fish, written by: tidegate completion fish\n\ncomplete -c tidegate -f\n")
	for _, c := range all {
		fmt.Fprintf(&b, "complete -c tidegate -n __fish_use_subcommand -a %s -d %s\n", c.name, fishQuote(c.summary))
	}
	for _, c := range all {
		after := "complete -c tidegate -n '__fish_seen_subcommand_from " + c.name + "'"
		for _, f := range c.flags {
			option := "-l " + f.name
			if len(f.name) == 1 {
				option = "-s " + f.name
			}
			switch {
			case f.value == "":
			case len(f.words) > 0:
				option += " -x -a " + fishQuote(strings.Join(f.words, " "))
			case f.file:
				option += " -r -F"
			default:
				option += " -x"
			}
			fmt.Fprintf(&b, "%s %s -d %s\n", after, option, fishQuote(f.help))
		}
		switch {
		case len(c.takes.words) > 0:
			fmt.Fprintf(&b, "complete -c tidegate -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %[2]s' -a '%[2]s'\n", c.name, strings.Join(c.takes.words, " "))
		case len(c.takes.endings) > 0:
			fmt.Fprintf(&b, "%s -a '(__fish_complete_suffix %s)'\n", after, strings.Join(c.takes.endings, " "))
		}
	}
	return b.String()
}

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
