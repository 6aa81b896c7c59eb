package tidegate_test

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

func TestParseAlgorithmIsTheInverseOfString(t *testing.T) {
	for a := tidegate.Auto; a <= tidegate.Deny; a++ {
		got, err := tidegate.ParseAlgorithm(a.String())
		if got != a || err != nil {
			t.Errorf("%s parses as %s, %v", a, got, err)
		}
	}
	for _, name := range []string{"", "Token_Bucket", "token-bucket", "algorithm(10)"} {
		_, err := tidegate.ParseAlgorithm(name)
		if err == nil || !strings.Contains(err.Error(), "token_bucket") {
			t.Errorf("%q: error %v, want one that lists the names", name, err)
		}
	}
}

func TestNamesOfWhatIsNone(t *testing.T) {
	if got := tidegate.Algorithm(200).String(); got != "algorithm(200)" {
		t.Errorf("got %s", got)
	}
	if got := tidegate.Calendar(200).String(); got != "calendar(200)" {
		t.Errorf("got %s", got)
	}
	for c, want := range map[tidegate.Calendar]string{tidegate.NoCalendar: "none", tidegate.Day: "day", tidegate.Year: "year"} {
		if c.String() != want {
			t.Errorf("got %s, want %s", c, want)
		}
	}
}
