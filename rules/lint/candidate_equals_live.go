package lint

import "tidegate.dev/tidegate/internal/lang/diag"

func candidateEqualsLive(p *pass) {
	for _, r := range p.file.Rules {
		if r.Candidate == nil || r.Terms.Limits == nil {
			continue
		}
		for _, l := range r.Terms.Limits.All {
			if l.From == nil && l.Spec == r.Candidate.Spec {
				p.warn(r.Candidate.Pos, "the candidate is "+diag.Quote(l.Text)+", which equals the live limit: it would refuse the same requests", "write the limit that you want to try, or remove `candidate`")
				break
			}
		}
	}
}
