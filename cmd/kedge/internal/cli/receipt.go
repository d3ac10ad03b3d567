package cli

import (
	"fmt"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// receipt tells the user since when a right that ended is refused, and what was open. It is nil or empty if
// the hub gave none.
func (a *app) receipt(r *rest.Receipt) {
	if r == nil || r.HubRefusedAt == nil {
		return
	}
	open := fmt.Sprintf("%d open requests", r.StreamsCut)
	if r.StreamsCut == 1 {
		open = "1 open request"
	}
	text := fmt.Sprintf("The hub refuses it since %s and ended %s", r.HubRefusedAt.UTC().Format(time.RFC3339Nano), open)
	if r.KCPRefusedAt != nil {
		text += ", kcp refuses it since " + r.KCPRefusedAt.UTC().Format(time.RFC3339Nano)
	}
	fmt.Fprintln(a.Err, text+".")
}
