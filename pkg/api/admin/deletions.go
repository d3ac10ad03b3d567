package admin

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (h *Handler) deletions(w http.ResponseWriter, r *http.Request) error {
	var items []rest.Deletion
	add := func(kind, org, name, displayName string, requested, purgeAt *metav1.Time, purging bool) {
		if requested != nil || purging {
			items = append(items, rest.Deletion{
				Kind: kind, Name: name, OrgUUID: org, DisplayName: displayName, DeletionRequestedAt: requested,
				PurgeAt: purgeAt, Purging: purging,
			})
		}
	}
	for _, u := range h.People() {
		add("User", "", u.Name, u.Spec.DisplayName, u.Status.DeletionRequestedAt, tenancy.PurgeAt(u.Status.DeletionRequestedAt, h.Deletion), !u.DeletionTimestamp.IsZero())
	}
	for _, o := range h.Orgs() {
		add("Organization", "", o.UUID(), o.Spec.DisplayName, o.Status.DeletionRequestedAt, tenancy.PurgeAt(o.Status.DeletionRequestedAt, h.Deletion), !o.DeletionTimestamp.IsZero())
		for _, ws := range h.Views.Workspaces(o.UUID()) {
			add("Workspace", o.UUID(), ws.UUID, ws.DisplayName, ws.DeletionRequestedAt, h.PurgeAt(ws), ws.Terminating)
		}
	}
	return paging.Write(w, r, items, func(d rest.Deletion) (string, string) { return d.DisplayName, d.Kind + "/" + d.Name })
}
