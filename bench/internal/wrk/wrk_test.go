package wrk

import "testing"

func TestReadTally(t *testing.T) {
	const output = "Running 5s test @ http://127.0.0.1:8080\n\n{\"requests\":500,\"micros\":5000000,\"status\":4,\"socket\":3,\"p50\":20,\"p99\":900}\n"
	got, err := readTally([]byte(output))
	if want := (Tally{500, 5_000_000, 4, 3, 20, 900}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if got.Rate() != 100 {
		t.Errorf("%v requests/s, want 100", got.Rate())
	}
	for _, bad := range []string{"", "unable to connect", `{"requests":0,"micros":5}`} {
		if got, err := readTally([]byte(bad)); err == nil {
			t.Errorf("%q: %+v, want an error", bad, got)
		}
	}
}
