package rules

import (
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// explainShared sets Consistency and Shared of x: how the instances of a fleet share the counter.
// It leaves them empty if the rule is strict or says nothing, and for what refuses without counting.
// instances is how many the file says there are; 0 means that it does not say.
func (r *rule) explainShared(x *ExplainedCheck, instances int) {
	l := x.Check.Limit
	if l.Algorithm == tidegate.Deny || l.Terms.Role == tidegate.Blocks {
		return
	}
	shared, why := r.written().Sharing(l.Algorithm)
	switch {
	case why != "":
		x.Consistency, x.Shared = tidegate.Strict.String(), why
		return
	case shared == tidegate.Leased && x.Leaves > 0:
		x.Consistency, x.Shared = tidegate.Strict.String(), "not leased: Redis is asked each time whether enough remains for more important classes"
		return
	case shared == tidegate.Leased:
		x.Consistency, x.Shared = leasedText(l, instances)
	case shared == tidegate.Split:
		x.Consistency, x.Shared = shared.String(), splitText(l, instances)
	case shared == tidegate.Eventual:
		x.Consistency, x.Shared = shared.String(), eventualText+regionsText[l.Terms.Handling.OnPartition]
	default:
		return
	}
	if r.chosen[l.Identity()] {
		x.Shared += "; " + l.Algorithm.String() + " because of `consistency: " + r.policies.consistency + "`, as no algorithm is written"
	}
}

func leasedText(l *tidegate.Limit, instances int) (consistency, text string) {
	lease, err := rulefile.LeaseOf(l, instances)
	if err != nil {
		return tidegate.Strict.String(), "not leased: " + err.Error()
	}
	return tidegate.Leased.String(), "taken ahead " + grouped(int64(lease.Events)) + " at a time at most, used within " + lease.Life.Round(time.Millisecond).String()
}

func splitText(l *tidegate.Limit, instances int) string {
	per := "/" + periodText(l)
	whole := grouped(l.Events) + per
	if instances == 0 {
		return "each instance has its share of " + whole + ", by how many there are"
	}
	return "each of " + strings.Replace(rulefile.Instances(instances), "one instance", "1 instance", 1) +
		" has " + rulefile.ShortNumber(float64(l.Events)/float64(instances)) + per + " of " + whole
}

const eventualText = "each instance decides by itself; counts are exchanged every 100ms"

// regionsText is about limits shared by several regions.
var regionsText = [...]string{
	tidegate.RegionsApart:      "",
	tidegate.PartitionContinue: ", and between regions; one that is cut off goes on with what it knows",
	tidegate.PartitionShare:    ", and between regions; one that is cut off has its share of the limit",
}

// periodText returns the period of a limit as it is written in a rule.
func periodText(l *tidegate.Limit) string {
	if l.Algorithm == tidegate.Quota {
		return l.Calendar.String()
	}
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"second", time.Second}, {"minute", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"week", 7 * 24 * time.Hour}} {
		if l.Period == unit.is {
			return unit.name
		}
	}
	return l.Period.String()
}

// grouped returns n with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
