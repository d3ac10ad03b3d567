package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// headsInterval is the time after which the hub records the ends of the chains of the audit log again.
const headsInterval = time.Hour

// firstHeads is the time after which a new replica records for the first time that its chains exist, if it has an event:
// a restore of kcp then asks for its files. After that time a try that failed is repeated, too, or a restore would take a
// replica that runs for one that has ended.
const firstHeads = 2 * time.Second

// headsTimeout limits the time of a read or a write of the ends of the chains in kcp.
const headsTimeout = 2 * time.Second

// recordHeads writes the ends of the chains to the log, where those who can write the files cannot change them.
func (h *hub) recordHeads(ctx context.Context) {
	for _, head := range h.audit.Heads() {
		if head.Seq > 0 {
			log.From(ctx).Info("audit head", zap.Stringer("head", head))
		}
	}
}

// recordHeads writes the ends of the chains into kcp. It returns false where that failed.
func (a *assembly) recordHeads(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, headsTimeout)
	defer cancel()
	var cut []audit.Head
	err := bootstrap.ChangeRootAnnotation(ctx, a.clients, a.hub.config.Tree, v1alpha1.AuditHeadsAnnotation, func(held string) (text string, err error) {
		text, cut, err = audit.RecordHeads(held, a.hub.config.Clock.Now(), a.hub.audit.Heads())
		return text, err
	})
	if err != nil {
		log.From(ctx).Warn("the ends of the audit log are not recorded in kcp", zap.Error(err))
	}
	for _, head := range cut {
		log.From(ctx).Error("the end of the audit log was cut off: kcp has a later one; run kedge-hub audit verify", zap.Stringer("head", head))
	}
	return err == nil
}

const headsPath = "/audit/heads"

// recordedHeads are the ends of the chains in an annotation of the root workspace.
type recordedHeads struct {
	Text    string `json:"text"`
	Failure string `json:"failure,omitempty"`
}

// heads answers the operator's socket.
func (a *assembly) heads(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), headsTimeout)
	defer cancel()
	var answer recordedHeads
	var err error
	if answer.Text, err = bootstrap.RootAnnotation(ctx, a.clients, a.hub.config.Tree, v1alpha1.AuditHeadsAnnotation); err != nil {
		answer.Failure = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.From(ctx).Debug("nobody reads the ends of the audit log any more", zap.Error(err))
	}
}

// RecordedHeads returns the ends of the chains of all replicas that kcp has. It asks the hub that runs with the data folder,
// or else an external kcp. read is false if neither is there.
func RecordedHeads(ctx context.Context, c Config) (heads []audit.Head, read bool, err error) {
	text, err := askForHeads(ctx, c)
	if errors.Is(err, errNoHub) {
		if c.Embedded {
			return nil, false, nil
		}
		text, err = headsInKCP(ctx, c)
	}
	if err != nil {
		return nil, false, fmt.Errorf("the ends of the audit log that kcp has: %w", err)
	}
	heads, err = audit.RecordedHeads(text)
	return heads, err == nil, err
}

func askForHeads(ctx context.Context, c Config) (string, error) {
	answer, err := askLocal(ctx, localSocket(c), http.MethodGet, headsPath, 2*headsTimeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var r recordedHeads
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		return "", fmt.Errorf("the running hub answered %s: %w", answer.Status, err)
	}
	if r.Failure != "" {
		return "", fmt.Errorf("the running hub says: %s", r.Failure)
	}
	return r.Text, nil
}

func headsInKCP(ctx context.Context, c Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*headsTimeout)
	defer cancel()
	clients, err := connect.Clients(ctx, c.KCP())
	if err != nil {
		return "", err
	}
	defer clients.Close()
	return bootstrap.RootAnnotation(ctx, clients, c.Tree, v1alpha1.AuditHeadsAnnotation)
}

// runAudit records the ends of the chains until below ends, and then once more, writes what the budget counts, and stores
// the events in the records database.
func (a *assembly) runAudit(below context.Context) {
	a.running.Go(func() { a.hub.budget.Run(below) })
	if a.hub.shipper != nil {
		a.running.Go(func() { a.hub.shipper.Run(below) })
	}
	a.running.Go(func() {
		ticker := a.hub.config.Clock.NewTicker(headsInterval)
		defer ticker.Stop()
		first := a.hub.config.Clock.After(firstHeads)
		var again <-chan time.Time
		record := func() {
			again = nil
			if !a.recordHeads(below) {
				again = a.hub.config.Clock.After(firstHeads)
			}
		}
		for {
			select {
			case <-first:
				if slices.ContainsFunc(a.hub.audit.Heads(), func(h audit.Head) bool { return h.Log == audit.Rights && h.Seq > 0 }) {
					record()
				} else {
					first = a.hub.config.Clock.After(firstHeads)
				}
			case <-again:
				record()
			case <-below.Done():
				// kcp stops later.
				a.recordHeads(context.WithoutCancel(below))
				return
			case <-ticker.C():
				a.hub.recordHeads(below)
				record()
			}
		}
	})
}
