package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	programEach  = 100.0            // requests a second to each copy
	programStops = 10 * time.Second // how long Redis stands still
	programAfter = 4 * time.Second  // how long requests go on after it is back
)

var programHead = []string{"copies", "requests", "admitted before", "by each while Redis stands still", "at most", "after", "in all, of 1000", "slowest answer, ms", "bar, ms", "well again after"}

// programTrials are about Go programs with fleet.Open, in place of gateways.
func programTrials() (all []trial) {
	for _, copies := range []int{1, 2, 3} {
		all = append(all, trial{
			fmt.Sprintf("a Go program, copies: %d", copies), "fleet.Open and httplimit, 1000 an hour; Redis stands still for 10 s",
			func(ctx context.Context) (result, error) { return playProgram(ctx, copies) },
		})
	}
	return all
}

// playProgram uses half of the limit, stops Redis, and compares what the copies admit meanwhile
// and afterwards with what was left.
func playProgram(ctx context.Context, copies int) (*finding, error) {
	f := new(finding)
	err := onStage(ctx, cast{}, func(s *stage) {
		url := single()(s)[0]
		var paths []string
		var of []demand
		for i := range copies {
			s.fleet = append(s.fleet, s.startProgram(i, url))
			paths = append(paths, programPath+strconv.Itoa(i))
			of = append(of, demand{paths[i]: programEach})
		}
		for _, n := range s.fleet {
			s.must(n.await(ctx, copies))
		}
		l := newLoad(s)
		before := l.next(of...)
		for i := range programEvents / 2 {
			l.ask(s.fleet[i%copies], paths[i%copies])
		}
		w := watchHealth(s)
		s.servers[0].Pause()
		during := l.begin(of...)
		s.pause(programStops)
		l.settle(during)
		mended := time.Now()
		s.servers[0].Resume()
		recovery := w.awaitRecovery(mended)
		s.pause(time.Second)
		after := l.begin(of...)
		s.pause(programAfter)
		l.settle(after)
		w.end(mended)
		f.checkPrograms(paths, recovery, before, during, after)
	})
	return f, err
}

// startProgram runs a copy of the program.
func (s *stage) startProgram(i int, redis string) *node {
	dir := filepath.Join(s.dir, fmt.Sprint("node", i))
	s.must(os.Mkdir(dir, 0o700))
	address := freeAddresses(s, 1)[0]
	n := &node{
		gateway: "http://" + address, admin: "http://" + address, probe: "http://" + address + "/probe",
		log: filepath.Join(dir, "log"),
	}
	s.launch(n, programWord, address, redis, strconv.Itoa(os.Getpid()))
	return n
}

// checkPrograms: each copy has its share of what was left, to the request, and all together
// have the limit.
func (f *finding) checkPrograms(paths []string, recovery time.Duration, before, during, after *phase) {
	var each []string
	var sum, used, late, sent int64
	for _, path := range paths {
		used += before.passed(path)
	}
	// Each copy has seen only its own of the last requests before the outage: round up.
	most := (programEvents - used + int64(len(paths)) - 1) / int64(len(paths))
	for _, path := range paths {
		n := during.passed(path)
		each = append(each, fmt.Sprint(n))
		late += after.passed(path)
		sum += n
		sent += during.paths[path].sent.Load()
		if n > most {
			f.miss("a copy admitted %d while Redis stood still, want at most %d", n, most)
		}
	}
	sum += used + late
	f.still = max(during.inside.still, after.inside.still)
	f.cells = []string{
		fmt.Sprint(len(paths)), fmt.Sprint(sent), fmt.Sprint(used), strings.Join(each, ", "), fmt.Sprint(most), fmt.Sprint(late), fmt.Sprint(sum),
		tenths(during.inside.Slowest), tenths(deadline + grace + during.inside.Oversleep), seconds(recovery, 1),
	}
	if awake := during.inside.awake; awake > deadline+grace {
		f.miss("the slowest answer took %s and the oversleep of its process, want at most %s + %s", ms(awake), ms(deadline), ms(grace))
	}
	if tenth := int64(programEvents / 10); sum > programEvents+tenth || sum < programEvents-tenth {
		f.miss("%d admitted of %d", sum, programEvents)
	}
	if failed := before.failures() + during.failures() + after.failures(); failed > 0 {
		f.miss("%d requests failed", failed)
	}
	if recovery > mostRecovery {
		f.miss("well again after %s, want at most %s", ms(recovery), ms(mostRecovery))
	}
}
