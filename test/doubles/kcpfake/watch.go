package kcpfake

import (
	"encoding/json"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// event is a change of an object. old is nil for an addition, new for a removal.
type event struct {
	key      key
	old, new *unstructured.Unstructured
	version  int
}

// record adds an event and wakes the watches.
func (s *Server) record(e event) {
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Expire forgets the history of changes and ends all watches: a watch from an older
// resource version is refused with 410 from then on, as after a compaction.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.expired, s.events = s.version, nil
	close(s.changed)
	s.changed = make(chan struct{})
}

// sent is an event in the form of the wire.
type sent struct {
	Type   watch.EventType            `json:"type"`
	Object *unstructured.Unstructured `json:"object"`
}

// watch streams changes until the client goes, the server ends, or the history that the
// watch still needs is forgotten.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, in Request) {
	selected, err := selectorOf(in)
	if err != nil {
		answer(w, in, 0, nil, err)
		return
	}
	from := 0
	if version := in.Query.Get("resourceVersion"); version != "" {
		if from, err = strconv.Atoi(version); err != nil {
			answer(w, in, 0, nil, apierrors.NewBadRequest("resourceVersion is not a number"))
			return
		}
	}
	s.mu.Lock()
	if s.inactive(in) {
		_, _, err = s.do(in)
	} else if from > 0 && from < s.expired {
		err = apierrors.NewResourceExpired("the provided resource version is too old")
	}
	var first []sent
	if err == nil && from == 0 {
		for _, k := range s.keys(in) {
			if selected.matches(s.objects[k]) {
				first = append(first, sent{watch.Added, s.converted(in, s.objects[k])})
			}
		}
		from = s.version
	}
	s.mu.Unlock()
	if err != nil {
		answer(w, in, 0, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder, flusher := json.NewEncoder(w), http.NewResponseController(w)
	for {
		for _, e := range first {
			if encoder.Encode(e) != nil {
				return
			}
		}
		if flusher.Flush() != nil {
			return
		}
		s.mu.Lock()
		expired, changed := from < s.expired, s.changed
		first, from = s.since(in, selected, from), s.version
		s.mu.Unlock()
		if expired {
			return
		}
		if len(first) > 0 {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.stopped:
			return
		case <-changed:
		}
	}
}

// since are the events after a version that a watch is about. An object that begins or
// ceases to match the selector is added or deleted for the watch.
func (s *Server) since(in Request, selected selector, from int) []sent {
	var out []sent
	for _, e := range s.events {
		if e.version <= from || !covers(in, e.key) {
			continue
		}
		was, is := selected.matches(e.old), selected.matches(e.new)
		switch {
		case is && !was:
			out = append(out, sent{watch.Added, s.converted(in, e.new)})
		case is:
			out = append(out, sent{watch.Modified, s.converted(in, e.new)})
		case was:
			last := s.converted(in, e.old)
			last.SetResourceVersion(strconv.Itoa(e.version))
			out = append(out, sent{watch.Deleted, last})
		}
	}
	return out
}
