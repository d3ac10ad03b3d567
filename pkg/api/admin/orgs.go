package admin

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"k8s.io/utils/ptr"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func (h *Handler) orgView(o *v1alpha1.Organization) rest.AdminOrg {
	return rest.AdminOrg{
		UUID: o.Name, DisplayName: o.Spec.DisplayName, Personal: o.Spec.Personal, Billing: wire.Billing(o.Spec.Billing),
		WorkspaceQuota: rest.Quota{
			Limit: tenancy.Limit(o.Spec.WorkspaceQuota, h.DefaultWorkspaceQuota),
			Used:  h.Views.UsedWorkspaces(o.Name, o.Spec.WorkspaceClaims),
		},
		Storage:   h.storageView(o),
		CreatedAt: o.CreationTimestamp, CreatedBy: tenancy.Org{Organization: o}.CreatedBy(), Phase: string(tenancy.PhaseOf(o.Status.CommonStatus)),
		DeletionRequestedAt: o.Status.DeletionRequestedAt, PurgeAt: tenancy.PurgeAt(o.Status.DeletionRequestedAt, h.Deletion),
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

func (h *Handler) oneOrg(w http.ResponseWriter, r *http.Request) error {
	o, err := h.org(r)
	if err != nil {
		return err
	}
	body, version := h.answer(o)
	httpapi.Tag(w, version)
	return httpapi.Write(w, http.StatusOK, body)
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
	edit, limits, err := storage(in.Storage)
	if err != nil {
		return err
	}
	held, err := h.org(r)
	if err != nil {
		return err
	}
	return api.Change[tenancy.Org]{
		Intent: httpmw.Intent{Facts: audit.Facts{Quota: strings.TrimSpace(quotaIn(in.WorkspaceQuota) + " " + limits)}},
		Write: func(ctx context.Context, match api.Match) (tenancy.Org, error) {
			o, err := h.Store.ChangeOrganization(ctx, held.Organization, match, func(_ context.Context, o *v1alpha1.Organization) error {
				o.Spec.WorkspaceQuota = ptr.Deref(limit, o.Spec.WorkspaceQuota)
				if edit != nil {
					edit(&o.Spec)
				}
				return nil
			})
			return tenancy.Org{Organization: o}, err
		},
		Refs: orgRefs,
		Seen: func(o *tenancy.Org) bool {
			seen, ok := h.Views.Org(o.UUID())
			return ok && seen.Generation >= o.Generation
		},
		View: h.answer,
	}.Serve(w, r, &h.Deps)
}

// deleteOrg requests the deletion of an Organization (O-13). It can be undeleted until the grace
// period is over.
func (h *Handler) deleteOrg(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, true)
}

// undeleteOrg withdraws the request. It does not change an Organization that is not deleted.
func (h *Handler) undeleteOrg(w http.ResponseWriter, r *http.Request) error {
	return h.mark(w, r, false)
}

func (h *Handler) mark(w http.ResponseWriter, r *http.Request, deleted bool) error {
	held, err := h.org(r)
	if err != nil {
		return err
	}
	return api.Change[tenancy.Org]{
		Intent: httpmw.Intent{Reduces: deleted, SameSize: true},
		Write: func(ctx context.Context, match api.Match) (tenancy.Org, error) {
			return h.MarkOrg(ctx, held, match, deleted, func(*v1alpha1.Organization) error { return nil })
		},
		Refs: orgRefs,
		Seen: func(o *tenancy.Org) bool {
			seen, ok := h.Views.Org(o.UUID())
			if !ok || seen.Deleted() != deleted {
				return !ok
			}
			*o = seen
			return tenancy.DeletionFollowed(seen.Status.Conditions, deleted)
		},
		View: h.answer,
	}.Serve(w, r, &h.Deps)
}

func orgRefs(o tenancy.Org) []tenancy.Ref { return []tenancy.Ref{tenancy.OrgRef(o.UUID())} }

func (h *Handler) answer(o tenancy.Org) (any, string) {
	return h.orgView(o.Organization), o.ResourceVersion
}
