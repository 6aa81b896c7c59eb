package algo

// Spend is Take for nearly everything that a token bucket is asked: one copy, now, on
// a state written under this law and not ahead of it. It computes what Take does
// without building an Ask and a Verdict. It returns the level afterwards, which a
// refusal does not change. sure is false when only Take can tell.
func (l *BucketLaw) Spend(drained, now, cost int64) (level int64, ok, sure bool) {
	level = max(0, drained-now)
	if level > l.Brim || cost > l.Fits {
		return level, false, false
	}
	charged := level + cost*l.Em
	if charged > l.Brim {
		return level, false, true
	}
	return charged, true, true
}

// Left is how many events would still pass at that level.
func (l *BucketLaw) Left(level int64) int64 { return int64(uint64(l.Brim-level) / uint64(l.Em)) }
