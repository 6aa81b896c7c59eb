package main

// history is the judge: the stamps of all that was admitted, and nothing
// clever. It shares no code with sliding_log, which it judges as well.
type history struct {
	stamps []int64
	oldest int // index of the first stamp still in the window
}

// inWindow returns how many were admitted in (us-window, us].
func (h *history) inWindow(us int64) int64 {
	for h.oldest < len(h.stamps) && h.stamps[h.oldest] <= us-window {
		h.oldest++
	}
	if h.oldest > 4096 { // the past is over: keep the slice short
		h.stamps = h.stamps[:copy(h.stamps, h.stamps[h.oldest:])]
		h.oldest = 0
	}
	return int64(len(h.stamps) - h.oldest)
}

func (h *history) admit(us int64) { h.stamps = append(h.stamps, us) }

func (h *history) reset() { h.stamps, h.oldest = h.stamps[:0], 0 }

// score is how an algorithm did. It is judged on what it admitted itself: to
// admit is wrong when a full limit already lies in the last window, to refuse
// is wrong when less does.
type score struct {
	admitted   int64
	wrongAllow int64
	wrongDeny  int64
	farAllow   int64 // of the wrong ones, those off by more than slack
	farDeny    int64
	most       int64 // admitted in any one window
}

// slack is 5 % of the limit: what few would notice.
const slack = events / 20

// play runs one client's requests through g, afresh.
func (s *score) play(g gate, h *history, requests []int64) {
	g.reset()
	h.reset()
	for _, us := range requests {
		before := h.inWindow(us)
		if g.take(us) {
			h.admit(us)
			s.admitted++
			s.most = max(s.most, before+1)
			if before >= events {
				s.wrongAllow++
			}
			if before >= events+slack {
				s.farAllow++
			}
		} else if before < events {
			s.wrongDeny++
			if before < events-slack {
				s.farDeny++
			}
		}
	}
}

func (s *score) add(other score) {
	s.admitted += other.admitted
	s.wrongAllow += other.wrongAllow
	s.wrongDeny += other.wrongDeny
	s.farAllow += other.farAllow
	s.farDeny += other.farDeny
	s.most = max(s.most, other.most)
}

// exact returns how many of one client's requests an exact log admits.
func exact(h *history, requests []int64) (admitted int64) {
	h.reset()
	for _, us := range requests {
		if h.inWindow(us) < events {
			h.admit(us)
			admitted++
		}
	}
	return admitted
}
