package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// maxRecorded is the number of replicas with recorded heads. Those that were heard of longest ago go first.
const maxRecorded = 50

// entry is what a text of RecordHeads has of a replica.
type entry struct {
	At    time.Time `json:"at"`
	Heads []string  `json:"heads"`
}

// Recorded are the heads of a replica, and when it recorded them last.
type Recorded struct {
	At    time.Time
	Heads []Head
}

// RecordHeads adds the heads of a replica, as they are at a moment, to a text with those of all replicas. A chain that is
// shorter than it was keeps the head that was recorded, and is returned: its end was cut off. A text that cannot be read
// is an error.
func RecordHeads(text string, at time.Time, heads []Head) (changed string, cut []Head, err error) {
	all, err := ParseRecorded(text)
	if err != nil {
		return "", nil, err
	}
	for _, h := range heads {
		if h.Seq == 0 {
			continue
		}
		r := all[h.Replica]
		r.At = at.UTC().Truncate(time.Second)
		if i := slices.IndexFunc(r.Heads, func(held Head) bool { return held.Log == h.Log }); i < 0 {
			r.Heads = append(r.Heads, h)
		} else if held := r.Heads[i]; h.Seq < held.Seq || h.Seq == held.Seq && h.Hash != held.Hash {
			cut = append(cut, held)
		} else {
			r.Heads[i] = h
		}
		all[h.Replica] = r
	}
	written := make([]entry, 0, len(all))
	for _, r := range all {
		texts := make([]string, 0, len(r.Heads))
		for _, h := range r.Heads {
			texts = append(texts, h.String())
		}
		written = append(written, entry{r.At, texts})
	}
	slices.SortFunc(written, func(a, b entry) int {
		return cmp.Or(b.At.Compare(a.At), slices.Compare(a.Heads, b.Heads))
	})
	raw, err := json.Marshal(written[:min(len(written), maxRecorded)])
	return string(raw), cut, err
}

// RecordedHeads returns the heads of all replicas in a text of RecordHeads.
func RecordedHeads(text string) (heads []Head, err error) {
	all, err := ParseRecorded(text)
	for _, r := range all {
		heads = append(heads, r.Heads...)
	}
	slices.SortFunc(heads, func(a, b Head) int { return cmp.Compare(a.String(), b.String()) })
	return heads, err
}

// ParseRecorded returns what a text of RecordHeads has, by replica.
func ParseRecorded(text string) (map[string]Recorded, error) {
	all := map[string]Recorded{}
	if text == "" {
		return all, nil
	}
	var written []entry
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		return nil, fmt.Errorf("the recorded heads cannot be read: %w", err)
	}
	for _, r := range written {
		p := Recorded{At: r.At}
		for _, line := range r.Heads {
			h, err := ParseHead(line)
			if err != nil {
				return nil, fmt.Errorf("the recorded heads cannot be read: %w", err)
			}
			p.Heads = append(p.Heads, h)
			all[h.Replica] = p
		}
	}
	return all, nil
}
