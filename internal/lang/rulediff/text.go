package rulediff

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// text returns the text of a value of a rule file. Values that mean the same have the same text, and
// others have another one: whatever is not known here is written field by field.
func text(v any) string { return valueText(reflect.ValueOf(v)) }

var posType = reflect.TypeFor[diag.Pos]()

func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case rulefile.Word:
		return x.Text
	case rulefile.Pattern:
		return x.Text
	case rulefile.Source:
		return x.Text
	case rulefile.Condition:
		return x.Name.Text + ": " + joined(reflect.ValueOf(x.Any), " or ")
	case rulefile.Test:
		return testText(x)
	case rulefile.Limit:
		return limitText(&x)
	case rulefile.Bound:
		return x.Text
	case rulefile.Mode:
		return modeTexts[x]
	case rulefile.SetAside:
		return fmt.Sprintf("%s %v%%", x.Class.Text, float64(x.Share)/100)
	case tidegate.Spec:
		return specText(x)
	case tidegate.StatusRange:
		if x.From == x.To {
			return fmt.Sprint(x.From)
		}
		return fmt.Sprintf("%d-%d", x.From, x.To)
	case time.Duration:
		if x == 0 {
			return ""
		}
		return x.String()
	case time.Time:
		if x.IsZero() {
			return ""
		}
		return x.Format(time.RFC3339)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return valueText(v.Elem())
	case reflect.Slice:
		return joined(v, ", ")
	case reflect.Struct:
		return structText(v)
	case reflect.Bool:
		if v.Bool() {
			return "true"
		}
		return ""
	}
	if v.IsZero() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// modeTexts are the words of modes; "" is the default.
var modeTexts = [...]string{"", "shadow", "disabled"}

func joined(v reflect.Value, between string) string {
	all := make([]string, v.Len())
	for i := range all {
		all[i] = valueText(v.Index(i))
	}
	return strings.Join(all, between)
}

// structText writes the fields that say something, but for where they stand.
func structText(v reflect.Value) string {
	var all []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Type == posType {
			continue
		}
		text := valueText(v.Field(i))
		switch {
		case text == "":
		case f.Name == "Spec", f.Name == "All":
			all = append(all, text)
		default:
			all = append(all, snake(f.Name)+" "+text)
		}
	}
	return strings.Join(all, ", ")
}

// snake returns the name of a field as the language would write it.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func testText(t rulefile.Test) string {
	switch t.Kind {
	case rulefile.TestIn:
		return "in " + t.Text
	case rulefile.TestAbsent:
		return "absent"
	case rulefile.TestPresent:
		return "present"
	}
	return t.Text
}

func limitsText(l *rulefile.Limits) string { return strings.Join(limitTexts(l), " and ") }

// limitTexts returns the limits one by one.
func limitTexts(l *rulefile.Limits) (all []string) {
	if l.Unlimited {
		return []string{"unlimited"}
	}
	for i := range l.All {
		all = append(all, limitText(&l.All[i]))
	}
	return all
}

func limitText(l *rulefile.Limit) string {
	text := specText(l.Spec)
	if f := l.From; f != nil {
		return fmt.Sprintf("from %s per %s, at most %d, else %s", f.Source.Text, f.Period, f.Max, text)
	}
	return text
}

// specText returns the text of a limit, without what is as by default.
func specText(s tidegate.Spec) string {
	l, err := tidegate.NewLimit(s)
	if err != nil {
		return fmt.Sprintf("%+v", s)
	}
	switch l.Algorithm {
	case tidegate.Quota:
		text := fmt.Sprintf("%d/%s", l.Events, l.Calendar)
		if l.Zone != "" {
			text += " in " + l.Zone
		}
		if l.Anchor > 1 {
			text += fmt.Sprintf(" from day %d", l.Anchor)
		}
		return text
	case tidegate.Concurrency:
		return fmt.Sprintf("%d slots, lease %s", l.Events, l.Period)
	}
	text := fmt.Sprintf("%d/%s", l.Events, periodText(l.Period))
	// By default a small limit is a log and a large one sub-windows: nobody chose.
	if auto := tidegate.Per(l.Events, l.Period); auto.Algorithm != l.Algorithm {
		text += " " + l.Algorithm.String()
	}
	if l.Algorithm == tidegate.TokenBucket && l.Burst != l.Events || l.Algorithm == tidegate.LeakyBucket && l.Burst > 0 {
		text += fmt.Sprintf(" burst %d", l.Burst)
	}
	if l.Algorithm == tidegate.SubWindows && l.Parts != tidegate.DefaultParts {
		text += fmt.Sprintf(" in %d parts", l.Parts)
	}
	if l.Ceiling {
		text += " with ceiling"
	}
	if l.CountRejected {
		text += " counting rejected"
	}
	return text
}

// periodText returns a period as in minute, 5m or 1h30m.
func periodText(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	case 7 * 24 * time.Hour:
		return "week"
	}
	text := strings.TrimSuffix(d.String(), "0s")
	if text == "" || strings.HasSuffix(d.String(), "0s") && !strings.HasSuffix(text, "m") {
		return d.String() // 10s
	}
	if short := strings.TrimSuffix(text, "0m"); strings.HasSuffix(short, "h") {
		return short
	}
	return text
}
