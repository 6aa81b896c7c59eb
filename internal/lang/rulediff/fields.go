package rulediff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// ruleWords are the words of a rule by the field of [rulefile.Rule] that has them. Fields that
// are not here are not part of what a rule says: see untold.
var ruleWords = []struct{ field, word string }{
	{"Match", "match"},
	{"Per", "per"},
	{"Missing", "missing"},
	{"When", "when"},
	{"Unless", "unless"},
	{"Tier", "tier"},
	{"Terms", ""},
	{"For", ""},
	{"InsteadOf", "instead_of"},
	{"Count", "count"},
	{"Block", "block"},
	{"SetAside", "set_aside"},
	{"Shed", "shed"},
	{"Defer", "defer"},
	{"Deny", "deny"},
	{"Respond", "respond"},
	{"Mode", "mode"},
	{"Share", "enforce"},
	{"Candidate", "candidate"},
	{"OnStoreFailure", "on_store_failure"},
	{"OnFull", "on_full"},
	{"Consistency", "consistency"},
	{"Layers", "consistency layers"},
	{"OnPartition", "on_partition"},
}

// untold are the fields of a rule that say where it is written, or follow from the others.
var untold = []string{"Name", "Pos", "PerPos", "HasMissing", "LimitsPos", "BlockPos", "ModePos", "Known", "Queues"}

// ruleFields returns what a rule says, in the order of the language. What is as it would be
// without a word is left out.
func ruleFields(r *rulefile.Rule) part {
	p := part{branches: make(map[string]bool)}
	v := reflect.ValueOf(r).Elem()
	for _, w := range ruleWords {
		switch w.field {
		case "Terms":
			p.fields = append(p.fields, termFields(r.Terms)...)
		case "For":
			p.addBranches(r)
		default:
			p.fields = with(p.fields, field{name: w.word, text: ruleText(w.field, v.FieldByName(w.field))})
		}
	}
	return p
}

// with appends f if it says something.
func with(all []field, f field) []field {
	if f.text == "" {
		return all
	}
	return append(all, f)
}

// ruleText returns the text of a field; "" if that is the default.
func ruleText(name string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case rulefile.Missing:
		return [...]string{"", "skip", "refuse"}[x]
	case rulefile.FailMode:
		return [...]string{"", "allow", "deny"}[x]
	case tidegate.OnFull:
		return [...]string{"", "refuse"}[x]
	case int: // Share
		if x == 100*100 {
			return ""
		}
		return fmt.Sprintf("%v%%", float64(x)/100)
	case rulefile.Word:
		if name == "Consistency" && x.Text == "strict" {
			return ""
		}
	}
	return text(v.Interface())
}

// termFields returns what requests are held to.
func termFields(t rulefile.Terms) (all []field) {
	add := func(word string, f field) {
		f.name, f.word = word, word
		all = with(all, f)
	}
	if t.Limits != nil {
		add("limits", field{text: limitsText(t.Limits), limits: t.Limits})
	}
	if t.Quota != nil {
		add("quota", field{text: text(*t.Quota), spec: &t.Quota.Spec})
	}
	if t.Concurrency != nil {
		add("concurrency", field{text: text(*t.Concurrency), spec: &t.Concurrency.Spec})
	}
	if t.Over != nil {
		add("over", field{text: text(*t.Over)})
	}
	if t.Cost != nil {
		add("cost", field{text: text(*t.Cost)})
	}
	if t.Queue != nil {
		add("queue", field{text: text(*t.Queue)})
	}
	return all
}

// addBranches adds what the branches of a rule say, by whom they are for: their
// conditions, tier and row. The first that holds counts, so a branch also says where it stands
// among those that somebody wrote.
func (p *part) addBranches(r *rulefile.Rule) {
	var written []string
	times := make(map[string]int)
	for i := range r.For {
		b := &r.For[i]
		who := branchName(b)
		if times[who]++; times[who] > 1 { // those behind the first never hold, unless it ends
			who += fmt.Sprintf(" (%d)", times[who])
		}
		p.branches[who] = b.Whole
		for _, f := range termFields(b.Terms) {
			f.name, f.branch, f.made = f.word+" "+who, who, b.Made && b.Within.Line == 0
			p.fields = append(p.fields, f)
		}
		if b.Made {
			continue
		}
		written = append(written, who)
		p.fields = with(p.fields, field{name: "until " + who, text: text(b.Until)})
		p.fields = with(p.fields, field{name: "reason " + who, text: b.Reason})
	}
	if len(written) > 1 {
		p.fields = with(p.fields, field{name: "order of branches", text: strings.Join(written, ", then ")})
	}
}

func branchName(b *rulefile.Branch) string {
	var of []string
	if b.Made && b.Tier != "" {
		of = append(of, "of the tier "+b.Tier)
	}
	if b.Made && len(b.Row) > 0 {
		values := make([]string, len(b.Row))
		for i, v := range b.Row {
			values[i] = v.Name + " " + v.Value
		}
		of = append(of, "of the row "+strings.Join(values, ", "))
	}
	if b.Made && b.Within.Line == 0 {
		return strings.Join(of, ", ")
	}
	// The conditions of a made branch have those of its tier and row, too.
	if len(b.When) > 0 {
		of = append(of, "when "+text(b.When))
	}
	if len(b.Unless) > 0 {
		of = append(of, "unless "+text(b.Unless))
	}
	return strings.Join(of, ", ")
}

func listFields(l *rulefile.List) part {
	values := make(map[string]bool)
	for _, v := range l.Values {
		values[v.Text] = true
	}
	sorted := slices.Sorted(maps.Keys(values))
	return part{fields: []field{{name: "values", text: strings.Join(sorted, ", "), values: &values}}}
}

// valuesChange tells how many values of a list are new and gone, and names some.
func valuesChange(was, now map[string]bool) string {
	beyond := func(a, b map[string]bool) (all []string) {
		for v := range a {
			if !b[v] {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		return all
	}
	var told []string
	for _, x := range []struct {
		word   string
		values []string
	}{{"added", beyond(now, was)}, {"removed", beyond(was, now)}} {
		if n := len(x.values); n > 0 {
			const some = 5
			names := strings.Join(x.values[:min(n, some)], ", ")
			if n > some {
				names += ", …"
			}
			told = append(told, fmt.Sprintf("%d %s (%s)", n, x.word, names))
		}
	}
	return strings.Join(told, ", ")
}

// settings returns what a file says once for all rules. Defaults of rules are told by the rules
// that have them.
func settings(f *rulefile.File) (all []field) {
	if f.Respond != nil {
		all = with(all, field{name: "respond", text: text(*f.Respond)})
	}
	all = with(all, field{name: "headers", text: text(f.Headers)})
	if len(f.Classes) > 0 {
		names := make([]string, len(f.Classes))
		for i := range f.Classes {
			names[i] = text(f.Classes[i])
		}
		all = with(all, field{name: "classes", text: strings.Join(names, "; ")})
	}
	if f.Shed != nil {
		all = with(all, field{name: "shed", text: text(*f.Shed)})
	}
	if f.Instances > 0 {
		all = with(all, field{name: "instances", text: fmt.Sprint(f.Instances)})
	}
	return all
}
