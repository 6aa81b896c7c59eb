package process

import "testing"

func TestParseStatus(t *testing.T) {
	const status = "Name:\tengine\nVmHWM:\t    9012 kB\nVmRSS:\t    5678 kB\nThreads:\t6\n"
	f := func(name string, want int64) {
		t.Helper()
		got, err := parseStatus(status, name)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	f("VmRSS", 5678<<10)
	f("VmHWM", 9012<<10)
	for _, name := range []string{"VmPeak", "Name"} {
		if got, err := parseStatus(status, name); err == nil {
			t.Errorf("%s: %d, want an error", name, got)
		}
	}
}
