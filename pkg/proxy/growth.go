package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

const (
	// sizeClass is the size within which an update may move an object. An object cannot grow from
	// update to update beyond the end of its class.
	sizeClass = 1 << 10
	// maxBody is the largest body that the hub reads before it sends it; kcp refuses larger ones.
	maxBody = 3 << 20
	// undeclared is counted for a body of unknown size.
	undeclared = 1 << 20
)

// Storage has how full the store is. It is implemented by storage.Monitor.
type Storage interface {
	Level() storage.Level
	Admit(w storage.Write) error
}

// admitSize refuses a request for which the store or its tenant has no room. answered is true if it has
// answered. While there is room for everything it asks kcp nothing. Else an update is weighed: kcp
// says how large the object is, and how large it would be.
func (p *Proxy) admitSize(w http.ResponseWriter, r *http.Request, e *exchange, info *request.RequestInfo) (answered bool, err error) {
	store := p.config.Storage
	// kcp refuses a value of dryRun that it does not know.
	if store == nil || !p.config.Stores(r) || r.URL.Query().Has("dryRun") {
		return false, nil
	}
	switch info.Verb {
	case "delete", "deletecollection":
		return false, store.Admit(storage.Ending)
	case "update", "patch":
		if store.Level() == storage.Open {
			settle, err := p.config.Grow(r.Context(), e.stream.opened, Growth{
				Group: info.APIGroup, Resource: info.Resource, Created: mayCreate(r), Update: true, Bytes: sizeOfBody(r),
			})
			if err == nil {
				e.settle = settle
				return false, nil
			}
		}
		write, growth, refusal, err := p.weigh(r, e) //nolint:bodyclose // relay closes it
		switch {
		case err != nil:
			return false, err
		case refusal != nil:
			return true, relay(w, refusal, e)
		}
		if err := store.Admit(write); err != nil || write != storage.Growth {
			return false, err
		}
		growth.Group, growth.Resource = info.APIGroup, info.Resource
		e.settle, err = p.config.Grow(r.Context(), e.stream.opened, growth)
		return false, err
	}
	if info.Subresource != "" {
		// A token or an eviction, for example: nothing new is stored.
		return false, store.Admit(storage.Change)
	}
	if err := store.Admit(storage.Growth); err != nil {
		return false, err
	}
	e.settle, err = p.config.Grow(r.Context(), e.stream.opened, Growth{Group: info.APIGroup, Resource: info.Resource, Created: true, Bytes: sizeOfBody(r)})
	return false, err
}

// Growth is what a request may add to a Workspace.
type Growth struct {
	Group, Resource string
	// Created is true if it may add an object.
	Created bool
	// Update is true for a change of an object that was not weighed. Its object may have had all bytes of its
	// body before.
	Update bool
	// Bytes are the size of the body, or what a change was weighed to add.
	Bytes int64
}

// Outcome is what kcp's answer says of a request.
type Outcome int

// The outcomes. Unanswered is that of a request which kcp may or may not have carried out.
const (
	Unanswered Outcome = iota
	Refused
	Changed
	Created
)

func outcomeOf(code int) Outcome {
	switch {
	case code >= http.StatusInternalServerError:
		return Unanswered
	case code == http.StatusCreated:
		return Created
	case code < http.StatusMultipleChoices:
		return Changed
	}
	return Refused
}

// settled says what became of the request if it was counted, once.
func (e *exchange) settled(o Outcome) {
	if settle := e.settle; settle != nil {
		e.settle = nil
		settle(o)
	}
}

// mayCreate reports whether an update may create its object without saying so in its method.
func mayCreate(r *http.Request) bool {
	return r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyPatchType))
}

// sizeOfBody is the size that a request declares, or one that a request without a size may have.
func sizeOfBody(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return undeclared
	}
	return r.ContentLength
}

// weigh returns what an update does to the store, and what it adds if it is Growth. refusal is the answer of kcp to an update that it would
// refuse: it could carry out a repetition, so it must not get one.
func (p *Proxy) weigh(r *http.Request, e *exchange) (write storage.Write, growth Growth, refusal *http.Response, err error) {
	body, err := e.read(r, maxBody)
	if err != nil {
		return 0, growth, nil, err
	}
	now, err := p.ask(r, e, http.MethodGet, "", nil)
	if err != nil {
		return 0, growth, nil, err
	}
	before, err := sizeOf(now)
	if err != nil || now.StatusCode != http.StatusOK {
		// An update can create an object. What cannot be read cannot be weighed.
		return storage.Growth, Growth{Created: true, Bytes: int64(len(body))}, nil, err
	}
	query := r.URL.RawQuery
	if query != "" {
		query += "&"
	}
	then, err := p.ask(r, e, r.Method, query+"dryRun=All", body)
	if err != nil {
		return 0, growth, nil, err
	}
	if then.StatusCode >= http.StatusMultipleChoices {
		return 0, growth, then, nil
	}
	after, err := sizeOf(then)
	switch {
	case err != nil:
		return 0, growth, nil, err
	case then.StatusCode != http.StatusOK:
		return storage.Growth, Growth{Created: true, Bytes: int64(len(body))}, nil, nil
	case after < before:
		return storage.Ending, growth, nil, nil
	case classOf(after) <= classOf(before):
		return storage.Change, growth, nil, nil
	}
	return storage.Growth, Growth{Bytes: after - before}, nil, nil
}

func classOf(size int64) int64 { return (size + sizeClass - 1) / sizeClass }

// ask sends a request about the object of an exchange to kcp, with the credential and the sudo of the
// caller.
func (p *Proxy) ask(r *http.Request, e *exchange, method, query string, body []byte) (*http.Response, error) {
	header := r.Header.Clone()
	header.Del("Upgrade")
	cleanHeader(header, r.Header["Authorization"], e.requestID)
	e.elevation.write(header)
	for _, name := range []string{"Accept-Encoding", "If-None-Match"} {
		header.Del(name)
	}
	header.Set("Accept", "application/json")
	out := (&http.Request{
		Method: method, Header: header, Host: p.config.Upstream.Host, ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{Scheme: p.config.Upstream.Scheme, Host: p.config.Upstream.Host, Path: e.path, RawQuery: query},
	}).WithContext(r.Context())
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := p.config.Transport.RoundTrip(out)
	if err != nil {
		var known *errs.Error
		if errors.As(err, &known) {
			return nil, known
		}
		return nil, unanswered(err)
	}
	return answer, nil
}

// sizeOf reads the body of an answer and returns its size.
func sizeOf(r *http.Response) (int64, error) {
	n, err := io.Copy(io.Discard, r.Body)
	if err = cmp.Or(err, r.Body.Close()); err != nil {
		return 0, unanswered(err)
	}
	return n, nil
}

// unanswered is the error for a question about the size of an object that kcp did not answer.
func unanswered(err error) error {
	return errs.Wrap(errs.Unavailable, err, "kcp does not answer at the moment; try again").After(retryAfter)
}

// relay answers with an answer of kcp.
func relay(w http.ResponseWriter, answer *http.Response, e *exchange) error {
	defer func() { _ = answer.Body.Close() }()
	cleanAnswer(answer, e.stream.key.cluster)
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	// The client may have left.
	_, _ = io.Copy(countingWriter{w, e.stream.used}, answer.Body)
	return nil
}
