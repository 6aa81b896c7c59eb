package cli

import (
	"fmt"
	"strings"
)

// bashCompletion returns a function that needs only bash itself.
func bashCompletion(all []completion) string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return fmt.Sprintf(bashScript, strings.Join(names, " "), bashValues(all), bashFlags(all), bashArguments(all))
}

const bashScript = `# Completion of tidegate for bash, written by: tidegate completion bash

# _tidegate_words offers those of its words that begin like what was typed.
_tidegate_words() {
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

# _tidegate_first offers words of which a command takes one.
_tidegate_first() {
	local word
	for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
		[[ " $1 " == *" $word "* ]] && return
	done
	_tidegate_words "$1"
}

# _tidegate_flags offers flags with as many dashes as were typed.
_tidegate_flags() {
	local names=" $1"
	[[ $cur == -[!-]* ]] && names=${names// --/ -}
	_tidegate_words "$names"
}

# _tidegate_files offers folders, and the files with one of the endings.
_tidegate_files() {
	local file ending typed=${cur//\\/}
	typed=${typed#[\"\']}
	type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
	while IFS= read -r file; do
		if [[ -d ${file/#\~\//$HOME/} ]]; then
			COMPREPLY+=("$file")
			continue
		fi
		for ending in "$@"; do
			[[ $file == *"$ending" ]] && COMPREPLY+=("$file") && break
		done
	done < <(compgen -f -- "$typed")
}

_tidegate() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= flag= glued= i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] && before= # what follows is no flag
		[[ ${COMP_WORDS[i]} != -* && -z $command ]] && command=${COMP_WORDS[i]}
	done
	if [[ -z $command ]]; then
		_tidegate_words "%s --help --version"
		return
	fi

	# The flag whose value is typed: --flag value, or --flag=value, which bash may split.
	if [[ $cur == = ]]; then
		flag=$before cur=
	elif [[ $before == = ]]; then
		flag=${COMP_WORDS[COMP_CWORD-2]}
	elif [[ $cur == -*=* ]]; then
		flag=${cur%%%%=*} cur=${cur#*=} glued=$flag=
	elif [[ $before == -* ]]; then
		flag=$before
	fi
	flag=${flag#-}
	case "$command:${flag#-}" in
%s	esac
	if [[ -n $glued ]]; then
		COMPREPLY=("${COMPREPLY[@]/#/$glued}")
	fi
	[[ -n $flag ]] && return

	if [[ $cur == -* ]]; then
		case $command in
%s		esac
		return
	fi
	case $command in
%s	esac
}

complete -F _tidegate tidegate
`

// bashValues returns the cases of flags that take a value. All other flags take none.
func bashValues(all []completion) string {
	var b strings.Builder
	for _, c := range all {
		for _, f := range c.flags {
			if len(f.words) > 0 && f.value != "" {
				fmt.Fprintf(&b, "\t%s:%s) _tidegate_words %q ;;\n", c.name, f.name, strings.Join(f.words, " "))
			}
		}
		if files := c.with(func(f completedFlag) bool { return f.file && len(f.words) == 0 }); len(files) > 0 {
			fmt.Fprintf(&b, "\t%s) _tidegate_files '' ;;\n", alternatives(c.name, files))
		}
		if others := c.with(func(f completedFlag) bool { return f.value != "" && !f.file && len(f.words) == 0 }); len(others) > 0 {
			fmt.Fprintf(&b, "\t%s) ;;\n", alternatives(c.name, others))
		}
	}
	b.WriteString("\t*) flag= ;;\n")
	return b.String()
}

// bashFlags returns the cases of the names of flags.
func bashFlags(all []completion) string {
	var b strings.Builder
	for _, c := range all {
		if names := c.with(func(completedFlag) bool { return true }); len(names) > 0 {
			fmt.Fprintf(&b, "\t\t%s) _tidegate_flags %q ;;\n", c.name, "--"+strings.Join(names, " --"))
		}
	}
	return b.String()
}

// bashArguments returns the cases of arguments that are not flags.
func bashArguments(all []completion) string {
	var b strings.Builder
	for _, c := range all {
		switch {
		case len(c.takes.words) > 0:
			fmt.Fprintf(&b, "\t%s) _tidegate_first %q ;;\n", c.name, strings.Join(c.takes.words, " "))
		case len(c.takes.endings) > 0:
			fmt.Fprintf(&b, "\t%s) _tidegate_files %s ;;\n", c.name, strings.Join(c.takes.endings, " "))
		}
	}
	return b.String()
}
