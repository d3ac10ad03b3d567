package api

import (
	"net/http"
	"time"

	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// Streams are the open requests through the proxy.
type Streams interface {
	// CountCut counts the streams of a caller that end because a right or a credential ended, until taken
	// is called: those in an Organization, or all if org is empty. A caller is named as the proxy names it: by metadata.name of the User, or by tenancy.BotKey.
	CountCut(caller, org string) (taken func() int)
}

// Ending follows the end of a right of some callers for the receipt. The methods of nil do nothing.
type Ending struct {
	request *http.Request
	clock   clock.PassiveClock
	cuts    []func() int
	receipt rest.Receipt
}

// Follow begins to follow the end of a right, before it is written. The caller of Follow must call Close.
func (d *Deps) Follow(r *http.Request, callers ...string) *Ending {
	e := &Ending{request: r, clock: d.Clock}
	for _, caller := range callers {
		e.cuts = append(e.cuts, d.Streams.CountCut(caller, httpmw.OrgOf(r)))
	}
	return e
}

// cut ends the count of streams, and returns it.
func (e *Ending) cut() (streams int) {
	for _, cut := range e.cuts {
		streams += cut()
	}
	return streams
}

// HubRefuses says that the caches show the end.
func (e *Ending) HubRefuses() {
	if e != nil {
		e.now(&e.receipt.HubRefusedAt)
	}
}

// KCPRefuses says that kcp has no binding that gives more than is left.
func (e *Ending) KCPRefuses() {
	if e != nil {
		e.now(&e.receipt.KCPRefusedAt)
	}
}

// now sets a time that is not set yet.
func (e *Ending) now(at **time.Time) {
	if *at == nil {
		now := e.clock.Now().UTC()
		*at = &now
	}
}

// Receipt records the receipt in the audit log. It returns it if the client asks for it, and else nil.
func (e *Ending) Receipt(w http.ResponseWriter) *rest.Receipt {
	if e == nil {
		return nil
	}
	e.receipt.StreamsCut = e.cut()
	httpmw.Record(e.request, e.receipt)
	if !prefers(e.request, representation) {
		return nil
	}
	w.Header().Set("Preference-Applied", representation)
	return &e.receipt
}

// Write answers with 204, or with 200 and the receipt if the client asks for it. An answer that did not wait
// to the end is 202, and the receipt says how far it is.
func (e *Ending) Write(w http.ResponseWriter, late bool) error {
	switch receipt := e.Receipt(w); {
	case late && e != nil:
		return httpapi.Write(w, http.StatusAccepted, e.receipt)
	case receipt != nil:
		return httpapi.Write(w, http.StatusOK, receipt)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Close ends the count of streams.
func (e *Ending) Close() {
	if e != nil {
		e.cut()
	}
}
