package config

import "testing"

// Clients, those that are told to come again, a connection to an upstream for each client,
// and a reserve fit the limit of open files, whatever it is.
func TestConnectionsFitOpenFiles(t *testing.T) {
	before := 0
	for files := uint64(1); files < 1<<34; files += 1 + files/50 {
		got := connectionsFor(files)
		if got < before || got < 1 {
			t.Fatalf("%d open files: %d connections, and %d with fewer", files, got, before)
		}
		before = got
		told := min(got, max(64, got/8)) // see internal/front/gateway
		used := uint64(got + told + got)
		reserve := min(64, files/4)
		if files >= 4 && used+reserve > files {
			t.Fatalf("%d open files: %d connections need %d and %d", files, got, used, reserve)
		}
		if files >= 16 && files < 1<<20 && used+reserve < files*7/10 {
			t.Fatalf("%d open files: %d connections use no more than %d", files, got, used)
		}
	}
	for files, want := range map[uint64]int{0: 0, 200: 50, 1024: 448, 65536: 30810, 1<<64 - 1: mostConnections} {
		if got := connectionsFor(files); got != want {
			t.Errorf("%d open files: %d connections, want %d", files, got, want)
		}
	}
	if c, problems := Load(Options{Environ: []string{"TIDEGATE_LIMITS_CONNECTIONS=0"}, OpenFiles: 1024}); len(problems) > 1 || c.Limits.Connections != 0 {
		t.Errorf("0 is not any: %v, %v", c, problems)
	}
}
