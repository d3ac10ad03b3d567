package reconciler

import (
	"context"
	"crypto/rand"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// AuditedMembership writes a change of a Membership that a controller decided or carries out, between
// its intent and its outcome in the audit log. reduces says that the change takes rights away and
// gives none; any other one is not made while the audit log cannot be written.
func (d Deps) AuditedMembership(action string, reduces bool, cluster string, m *v1alpha1.Membership, facts audit.Facts, write func() error) error {
	e := audit.Event{
		ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: action,
		Workspace: tenancy.WorkspaceUUID(m), Object: m.Spec.UserRef.Name,
	}
	if facts.Given() {
		e.Facts = &facts
	}
	if org, ok := d.Views.OrgByCluster(cluster); ok {
		e.Org = org.UUID()
	}
	return d.Audit.Around(e, reduces, write)
}

// WorkspaceEnded writes the soft deletion of a Workspace whose time is over, between its intent and its outcome
// in the audit log. It takes rights away, and is made while the audit log cannot be written.
func (d Deps) WorkspaceEnded(orgCluster, workspace, at string, write func() error) error {
	e := audit.Event{
		ID: rand.Text(), Actor: audit.Actor{Kind: audit.ActorHub}, Action: "expire workspace",
		Workspace: workspace, Object: workspace, Facts: &audit.Facts{ExpiresAt: at},
	}
	if org, ok := d.Views.OrgByCluster(orgCluster); ok {
		e.Org = org.UUID()
	}
	return d.Audit.Around(e, true, write)
}

// Purged writes to the log and to the audit log that something was removed for good,
// with the number of objects that were removed with it.
func (d Deps) Purged(ctx context.Context, e audit.Event, counts map[string]int) {
	e.ID, e.Stage, e.Actor, e.Action = rand.Text(), audit.StageOutcome, audit.Actor{Kind: audit.ActorHub}, "purge"
	e.Facts = &audit.Facts{Counts: counts}
	log.From(ctx).Info("purged", zap.String("org", e.Org), zap.String("workspace", e.Workspace), zap.String("object", e.Object), zap.Any("counts", counts))
	_ = d.Audit.Write(e)
}
