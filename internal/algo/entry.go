package algo

// Entry is the content of a record with at most one entry, for a store that keeps it without a
// record. The zero Entry stands for an empty record.
type Entry struct {
	Stamp, Count int64
	Parts        int64 // as Record.Parts returns it
}

// EntryWords is the size of a record with room for one entry, in words.
const EntryWords = RunsHeader + 1

// Record returns e as a record stored in words, which must be all zero.
func (e Entry) Record(words *[EntryWords]uint64) Record {
	r := Record{first: words[:], size: EntryWords}
	if e.Count == 0 {
		return r
	}
	words[0] = uint64(e.Stamp) | topBit
	words[1] = uint64(e.Parts)<<48 | 1 | topBit
	words[2] = uint64(e.Count) | topBit
	words[3] = uint64(e.Count) | topBit // at the base
	return r
}

// Entry returns the content of a record with at most one entry. It reports false if r has more.
func (r *Record) Entry() (e Entry, ok bool) {
	switch r.len() {
	case 0:
		return e, true
	case 1:
	default:
		return e, false
	}
	shape := logShape
	e.Parts = r.Parts()
	if e.Parts > 0 {
		shape = partsShape
	}
	e.Stamp, e.Count = shape.at(r, 0)
	return e, true
}

// SpendEntry is Spend for a record of one entry, but leaves it to the caller to add cost to the
// entry. If ok is false, call Take instead. It is never ok for a log, because there another event is
// mostly another entry.
func (l *RunsLaw) SpendEntry(e Entry, now, cost int64) (left, reset, at int64, ok bool) {
	if l.exact() || e.Parts != l.parts.Parts || cost > l.log.Brim {
		return 0, 0, 0, false
	}
	_, at, ok = l.parts.within(e.Stamp, now)
	left = l.parts.Brim - e.Count - cost
	return left, l.parts.expiry(e.Stamp) - now, at, ok && left >= 0
}
