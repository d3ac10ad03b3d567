package workspaces

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// edit is a change of a Workspace. What does not change is nil.
type edit struct {
	name, description *string
	end               *tenancy.Expiry
	// requests is none or members.
	requests *string
	billing  tenancy.BillingEdit
}

// editOf reads a patch.
func (h *Handler) editOf(r *http.Request) (e edit, err error) {
	var in rest.UpdateWorkspaceRequest
	if err := httpapi.Read(r, &in); err != nil {
		return e, err
	}
	if e.name, err = mergepatch.Given(mergepatch.DisplayName(in.DisplayName)); err != nil {
		return e, err
	}
	if e.description, err = mergepatch.Given(mergepatch.Description(in.Description)); err != nil {
		return e, err
	}
	if e.end, err = h.Expiry(in.ExpiresAt); err != nil {
		return e, err
	}
	choice := mergepatch.OneOf("requests", tenancy.RequestsNone, tenancy.RequestsMembers)
	if e.requests, err = mergepatch.Given(choice(in.Requests)); err != nil {
		return e, err
	}
	e.billing, err = mergepatch.Billing(in.Billing)
	return e, err
}

// defines names the fields that change and give nobody a right.
func (e edit) defines() (fields []string) {
	if e.billing != nil {
		fields = append(fields, "billing")
	}
	if e.name != nil {
		fields = append(fields, "displayName")
	}
	if e.description != nil {
		fields = append(fields, "description")
	}
	return fields
}

// empty reports whether nothing changes.
func (e edit) empty() bool {
	return e.defines() == nil && e.end == nil && e.requests == nil
}

// opens reports whether the change lets members of the Organization ask for rights.
func (e edit) opens() bool { return e.requests != nil && *e.requests == tenancy.RequestsMembers }

// reduces reports whether the change only brings the end of a Workspace forward.
func (e edit) reduces(ws tenancy.Workspace) bool {
	return e.defines() == nil && e.requests == nil && e.end != nil && e.end.At != nil && tenancy.EndsSooner(e.end.At, ws.ExpiresAt)
}

// closes reports whether the change only lets members of the Organization ask for rights no longer.
func (e edit) closes() bool {
	return e.defines() == nil && e.end == nil && e.requests != nil && !e.opens()
}

// intent is that of the change of a Workspace.
func (e edit) intent(ws tenancy.Workspace) (i httpmw.Intent) {
	i.Facts.Fields, i.Reduces = e.defines(), e.closes()
	if e.requests != nil {
		i.Facts.Fields = append(i.Facts.Fields, "requests")
	}
	if e.end != nil {
		i.Facts.ExpiresAt, i.Reduces = tenancy.ExpiryText(e.end.At), e.reduces(ws)
	}
	return i
}

func (h *Handler) patch(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	by, err := h.Rights.Begin(r, func(s tenancy.Scope) error { return s.RequireWorkspaceManager("change it") })
	if err != nil {
		return err
	}
	e, err := h.editOf(r)
	if err != nil {
		return err
	}
	if e.empty() && api.Unchanged(r) {
		return h.get(w, r)
	}
	return api.Change[tenancy.Workspace]{
		Intent: e.intent(*scope.Workspace),
		Write: func(ctx context.Context, match api.Match) (tenancy.Workspace, error) {
			// A later end gives everybody in the Workspace what they would not have, and who may ask can be given it.
			gives := func(ws tenancy.Workspace) bool { return e.opens() || e.end != nil && !e.reduces(ws) }
			return h.grant(ctx, scope, match, by, gives, func(ws tenancy.Workspace, annotations map[string]string) error {
				if ws.Deleted() || tenancy.Ended(ws.ExpiresAt, h.Rights.Clock.Now()) {
					return api.NotReady()
				}
				if e.end != nil {
					tenancy.SetWorkspaceEnd(annotations, e.end.At)
				}
				if e.requests != nil {
					if !e.opens() {
						if err := by.JudgeNow(ctx); err != nil {
							return err
						}
					}
					tenancy.SetWorkspaceRequests(annotations, *e.requests)
				}
				if e.name != nil {
					annotations[v1alpha1.DisplayNameAnnotation] = *e.name
				}
				if e.description != nil {
					tenancy.SetWorkspaceDescription(annotations, *e.description)
				}
				return h.bill(scope.Org, ws, annotations, e.billing)
			})
		},
		Refs: func(ws tenancy.Workspace) []tenancy.Ref { return refs(ws, scope.User) },
		Seen: func(changed *tenancy.Workspace) bool {
			seen, ok := h.Views.Workspace(changed.OrgUUID, changed.UUID)
			return ok && seen.DisplayName == changed.DisplayName && seen.Description == changed.Description &&
				seen.ExpiresAt.Equal(changed.ExpiresAt) && seen.Requests == changed.Requests &&
				equality.Semantic.DeepEqual(seen.Billing, changed.Billing) && !stale(h.Views.Index(scope.User), *changed)
		},
		View: h.answer(scope),
	}.Serve(w, r, &h.Deps)
}
