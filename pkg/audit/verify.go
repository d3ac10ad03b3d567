package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Finding is what is wrong with a chain.
type Finding struct {
	// File is empty for what is about a chain and not about a file.
	File string
	// Replica, Log and Seq say where in a chain it is. They are empty for a line that is no event.
	Replica, Log string
	Seq          uint64
	Problem      string
}

func (f Finding) String() string {
	text := f.Problem
	if f.Replica != "" {
		text = fmt.Sprintf("replica %s, %s, event %d: %s", f.Replica, f.Log, f.Seq, text)
	}
	if f.File != "" {
		text = f.File + ": " + text
	}
	return text
}

// chainKey identifies a chain.
type chainKey struct{ replica, log string }

// segment is a part of a chain without a break, as far as the file goes.
type segment struct {
	file        string
	first, last uint64
	// prev is what the first event says of the one before; hash is that of the last event.
	prev, hash string
}

// Verifier walks chains, in files and elsewhere.
type Verifier struct {
	Findings []Finding
	segments map[chainKey][]*segment
	// begins are the first events that are kept, as rotations say it; those before them were removed.
	begins map[chainKey]uint64
}

// NewVerifier returns a Verifier.
func NewVerifier() *Verifier {
	return &Verifier{segments: map[chainKey][]*segment{}, begins: map[chainKey]uint64{}}
}

// File walks the events of a file.
func (v *Verifier) File(name string) error {
	add := v.Walk(name)
	return Lines(name, 0, func(l Line) bool {
		switch {
		case len(l.Text) == 0 && l.Whole:
			// The end of a line that a killed hub left.
		case !l.OK && torn(l.Text):
		case !l.OK || l.Event.Replica == "" || l.Event.Seq == 0:
			v.Findings = append(v.Findings, Finding{File: name, Problem: fmt.Sprintf("the line that ends at byte %d is no event of a chain", l.End)})
		default:
			add(l.Event, l.Hash)
		}
		return true
	})
}

// Walk returns a func that takes the events of a place, such as a table, in their order, with the hashes of their
// lines.
func (v *Verifier) Walk(place string) (add func(e Event, hash string)) {
	here := map[chainKey]*segment{}
	return func(e Event, hash string) { v.add(here, place, e, hash) }
}

// Has reports whether any event of a replica was walked.
func (v *Verifier) Has(replica string) bool {
	return len(v.segments[chainKey{replica, Rights}])+len(v.segments[chainKey{replica, Writes}]) > 0
}

// Find notes a finding about an event.
func (v *Verifier) Find(place string, at Head, problem string) {
	v.Findings = append(v.Findings, Finding{File: place, Replica: at.Replica, Log: at.Log, Seq: at.Seq, Problem: problem})
}

// Anchor takes the last event of a chain that was removed from a place because of its age.
func (v *Verifier) Anchor(place string, at Head) {
	key := chainKey{at.Replica, at.Log}
	v.segments[key] = append(v.segments[key], &segment{file: place, first: at.Seq, last: at.Seq, hash: at.Hash})
	v.begins[key] = max(v.begins[key], at.Seq)
}

// torn reports whether a line is the beginning of an event, as a full disk or a killed hub leaves it. What followed
// in the chain says whether the event was written.
func torn(text []byte) bool {
	begin := []byte(`{"apiVersion":"` + APIVersion + `"`)
	return len(text) > 0 && !bytes.HasSuffix(text, []byte("}")) && bytes.HasPrefix(text, begin[:min(len(begin), len(text))])
}

// add takes the next event of a file.
func (v *Verifier) add(here map[chainKey]*segment, file string, e Event, hash string) {
	key := chainKey{e.Replica, e.Log}
	find := func(seq uint64, format string, args ...any) {
		v.Findings = append(v.Findings, Finding{File: file, Replica: e.Replica, Log: e.Log, Seq: seq, Problem: fmt.Sprintf(format, args...)})
	}
	if e.Rotation != nil {
		v.begins[key] = max(v.begins[key], e.Rotation.First)
	}
	s, ok := here[key]
	switch {
	case !ok:
		s = &segment{file: file, first: e.Seq, prev: e.Prev}
		here[key] = s
		v.segments[key] = append(v.segments[key], s)
	case e.Seq <= s.last:
		find(e.Seq, "stands behind event %d: it is there twice, or was moved", s.last)
		return
	case e.Seq > s.last+1:
		find(s.last+1, "is missing, with all up to %d", e.Seq-1)
	case e.Prev != s.hash:
		find(s.last, "was changed: it is not the one that event %d follows", e.Seq)
	}
	s.last, s.hash = e.Seq, hash
}

// Done compares the ends of the files, and the ends of the chains with heads that were recorded elsewhere.
func (v *Verifier) Done(heads ...Head) []Finding {
	recorded := map[chainKey]Head{}
	for _, h := range heads {
		if key := (chainKey{h.Replica, h.Log}); h.Seq >= recorded[key].Seq {
			recorded[key] = h
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(v.segments), func(a, b chainKey) int {
		return cmp.Or(cmp.Compare(a.replica, b.replica), cmp.Compare(a.log, b.log))
	}) {
		v.stitch(key)
		if h, ok := recorded[key]; ok {
			v.reaches(key, h)
		}
	}
	for key, h := range recorded {
		if _, ok := v.segments[key]; !ok && h.Seq > 0 {
			v.Findings = append(v.Findings, Finding{Replica: key.replica, Log: key.log, Seq: h.Seq, Problem: "is missing, with the whole chain"})
		}
	}
	return v.Findings
}

// stitch compares the parts of a chain.
func (v *Verifier) stitch(key chainKey) {
	parts := v.segments[key]
	slices.SortStableFunc(parts, func(a, b *segment) int { return cmp.Compare(a.first, b.first) })
	find := func(file string, seq uint64, format string, args ...any) {
		v.Findings = append(v.Findings, Finding{File: file, Replica: key.replica, Log: key.log, Seq: seq, Problem: fmt.Sprintf(format, args...)})
	}
	if first := parts[0]; first.first > max(1, v.begins[key]) {
		find(first.file, max(1, v.begins[key]), "is missing, with all up to %d; no rotation removed them", first.first-1)
	} else if first.first == 1 && first.prev != "" {
		find(first.file, 1, "is not the beginning of its chain")
	}
	for i, next := range parts[1:] {
		last := parts[i]
		switch {
		case next.first <= last.last:
			find(next.file, next.first, "is in %s, too", last.file)
		case next.first > last.last+1:
			find(next.file, last.last+1, "is missing, with all up to %d", next.first-1)
		case next.prev != last.hash:
			find(last.file, last.last, "was changed: it is not the one that event %d follows", next.first)
		}
	}
}

// reaches compares the end of a chain with a head that was recorded.
func (v *Verifier) reaches(key chainKey, h Head) {
	parts := v.segments[key]
	last := parts[len(parts)-1]
	switch {
	case last.last < h.Seq:
		v.Findings = append(v.Findings, Finding{last.file, key.replica, key.log, last.last + 1, fmt.Sprintf("is missing, with all up to %d: the end of the chain was cut off", h.Seq)})
	case last.last == h.Seq && last.hash != h.Hash:
		v.Findings = append(v.Findings, Finding{last.file, key.replica, key.log, last.last, "was changed: it is not the one that was recorded"})
	}
}
