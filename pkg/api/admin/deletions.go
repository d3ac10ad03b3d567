package admin

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// deletion is a soft-deleted object that is not purged yet.
type deletion struct {
	// Kind is User, Organization or Workspace.
	Kind string `json:"kind"`
	// Name is the metadata.name of a User, or a UUID.
	Name                string       `json:"name"`
	OrgUUID             string       `json:"orgUUID,omitempty"`
	DisplayName         string       `json:"displayName"`
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt"`
	PurgeAt             *metav1.Time `json:"purgeAt"`
	// Purging is true if the grace period is over.
	Purging bool `json:"purging"`
}

func (h *Handler) deletions(w http.ResponseWriter, r *http.Request) error {
	var items []deletion
	add := func(kind, org, name, displayName string, requested *metav1.Time, purging bool) {
		if requested != nil || purging {
			items = append(items, deletion{kind, name, org, displayName, requested, tenancy.PurgeAt(requested, h.DeletionGrace), purging})
		}
	}
	for _, u := range h.Views.People() {
		add("User", "", u.Name, u.Spec.DisplayName, u.Status.DeletionRequestedAt, !u.DeletionTimestamp.IsZero())
	}
	for _, o := range h.Orgs() {
		add("Organization", "", o.UUID(), o.Spec.DisplayName, o.Status.DeletionRequestedAt, !o.DeletionTimestamp.IsZero())
		for _, ws := range h.Views.Workspaces(o.UUID()) {
			add("Workspace", o.UUID(), ws.UUID, ws.DisplayName, ws.DeletionRequestedAt, ws.Terminating)
		}
	}
	return paging.Write(w, r, items, func(d deletion) (string, string) { return d.DisplayName, d.Kind + "/" + d.Name })
}
