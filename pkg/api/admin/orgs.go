package admin

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"k8s.io/utils/ptr"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/waiting"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (h *Handler) orgView(o *v1alpha1.Organization) rest.AdminOrg {
	return rest.AdminOrg{
		UUID: o.Name, DisplayName: o.Spec.DisplayName, Personal: o.Spec.Personal,
		WorkspaceQuota: rest.Quota{
			Limit: tenancy.Limit(o.Spec.WorkspaceQuota, h.DefaultWorkspaceQuota),
			Used:  h.UsedWorkspaces(o.Name, o.Spec.WorkspaceClaims),
		},
		CreatedAt: o.CreationTimestamp, CreatedBy: tenancy.Org{Organization: o}.CreatedBy(), Phase: string(tenancy.PhaseOf(o.Status.CommonStatus)),
		DeletionRequestedAt: o.Status.DeletionRequestedAt, PurgeAt: tenancy.PurgeAt(o.Status.DeletionRequestedAt, h.DeletionGrace),
	}
}

// orgs answers with all Organizations, soft-deleted ones included.
func (h *Handler) orgs(w http.ResponseWriter, r *http.Request) error {
	personal, err := httpapi.Flag(r, "personal")
	if err != nil {
		return err
	}
	all := r.URL.Query().Get("personal") == ""
	var items []rest.AdminOrg
	for _, o := range h.Orgs() {
		if all || o.Spec.Personal == personal {
			items = append(items, h.orgView(o.Organization))
		}
	}
	return paging.Write(w, r, items, func(v rest.AdminOrg) (string, string) { return v.DisplayName, v.UUID })
}

// org returns the Organization in the path.
func (h *Handler) org(r *http.Request) (tenancy.Org, error) {
	o, ok := h.Views.Org(chi.URLParam(r, "org"))
	if !ok {
		return tenancy.Org{}, errs.New(errs.NotFound, "there is no organization with this UUID")
	}
	return o, nil
}

func (h *Handler) patchOrg(w http.ResponseWriter, r *http.Request) error {
	var in rest.AdminUpdateOrgRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	limit, err := number("workspaceQuota", in.WorkspaceQuota)
	if err != nil {
		return err
	}
	held, err := h.org(r)
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Facts: audit.Facts{Quota: quotaIn(in.WorkspaceQuota)}})
	if err != nil {
		return err
	}
	defer cancel()
	o, err := h.Store.ChangeOrganization(ctx, held.Organization, match, func(_ context.Context, o *v1alpha1.Organization) error {
		o.Spec.WorkspaceQuota = ptr.Deref(limit, o.Spec.WorkspaceQuota)
		return nil
	})
	if err != nil {
		return err
	}
	waiting.Until(r, h.FollowTimeout, h.Await, []tenancy.Ref{tenancy.OrgRef(o.Name)}, func() bool {
		seen, ok := h.Views.Org(o.Name)
		return ok && seen.Generation >= o.Generation
	})
	return h.writeOrg(w, o)
}

// deleteOrg requests the deletion of an Organization (O-13). Its admins can undelete it until
// the grace period is over.
func (h *Handler) deleteOrg(w http.ResponseWriter, r *http.Request) error {
	held, err := h.org(r)
	if err != nil {
		return err
	}
	match, err := httpapi.IfMatch(r)
	if err != nil {
		return err
	}
	ctx, cancel, err := waiting.Write(r, httpmw.Intent{Reduces: true})
	if err != nil {
		return err
	}
	defer cancel()
	marked, err := h.Store.ChangeOrganization(ctx, held.Organization, match, func(_ context.Context, o *v1alpha1.Organization) (err error) {
		d := tenancy.Deletable{Noun: "organization", Requested: o.Status.DeletionRequestedAt, Removing: !o.DeletionTimestamp.IsZero()}
		o.Status.DeletionRequestedAt, err = d.Mark(true, h.Clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	waiting.Until(r, h.FollowTimeout, h.Await, []tenancy.Ref{tenancy.OrgRef(marked.Name)}, func() bool {
		seen, ok := h.Views.Org(marked.Name)
		return !ok || seen.Deleted() && tenancy.DeletionFollowed(seen.Status.Conditions, true)
	})
	return h.writeOrg(w, marked)
}

func (h *Handler) writeOrg(w http.ResponseWriter, o *v1alpha1.Organization) error {
	httpapi.Tag(w, o.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.orgView(o))
}
