package algo

// Spend is Take for what is nearly all that a token bucket is asked: one copy,
// now, on a state written under this law and not ahead of it. It computes what
// Take does without building an Ask and a Verdict. owed is what is owed after
// it; a refusal leaves it as it was. sure is false when only Take can tell.
func (l *BucketLaw) Spend(drained, now, cost int64) (owed int64, ok, sure bool) {
	owed = max(0, drained-now)
	if owed > l.Brim || cost > l.Fits {
		return owed, false, false
	}
	charged := owed + cost*l.Em
	if charged > l.Brim {
		return owed, false, true
	}
	return charged, true, true
}

// Left is how many events would still pass when so much is owed.
func (l *BucketLaw) Left(owed int64) int64 { return int64(uint64(l.Brim-owed) / uint64(l.Em)) }
