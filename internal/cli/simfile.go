package cli

import (
	"flag"
	"fmt"
	"path/filepath"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// readFile sets the flags that a scenario file has as fields, unless the command line has set
// them.
func (o *simOptions) readFile(name string) diag.List {
	src, err := bounded.ReadFile(name, yamltree.MaxSize)
	if err != nil {
		return diag.List{{Pos: diag.Pos{File: name}, Message: "cannot read the scenario: " + diag.Reason(err), Hint: "name a file, or a scenario that ships; tidegate sim --help lists them"}}
	}
	root, problems := yamltree.Parse(name, src)
	if root == nil || len(problems) > 0 {
		return problems
	}
	lines := diag.SplitLines(src)
	wrong := func(n *yamltree.Node, message, hint string) {
		problems.Add(lines.Problem(n.Pos, diag.Error, message, hint))
	}
	if root.Kind != yamltree.Map {
		wrong(root, "a scenario is a map of fields, not "+root.What(), "write for example nodes: 20")
		return problems
	}
	given := make(map[string]bool)
	o.set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, field := range root.Fields {
		f := o.set.Lookup(field.Key.Value)
		if f == nil || f.Name == "scenario" || f.Name == "random" || f.Name == "html" {
			wrong(field.Key, fmt.Sprintf("a scenario has no field %s", diag.Quote(field.Key.Value)), "the fields are the flags of tidegate sim, such as nodes, load, fault")
			continue
		}
		if given[f.Name] || f.Name == "rules" && o.rules != "" {
			continue
		}
		values := field.Value.Items
		if field.Value.Kind != yamltree.List {
			values = []*yamltree.Node{field.Value}
		}
		for _, v := range values {
			if v.Kind != yamltree.Scalar {
				wrong(v, "want one value, not "+v.What(), "write it as on the command line")
				continue
			}
			text := v.Value
			if (f.Name == "rules" || f.Name == "was") && !filepath.IsAbs(text) {
				text = filepath.Join(filepath.Dir(name), text)
			}
			if err := f.Value.Set(text); err != nil {
				wrong(v, fmt.Sprintf("%s is not valid for %s: %v", diag.Quote(v.Value), f.Name, err), "write it as on the command line: --"+f.Name+" means "+f.Usage)
			}
		}
	}
	return problems
}
