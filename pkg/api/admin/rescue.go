package admin

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/idempotency"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// addAdmin makes a person admin of an Organization without an admin who can act. Its events, with the reason, are in the
// activity of the Organization.
func (h *Handler) addAdmin(w http.ResponseWriter, r *http.Request) error {
	var in rest.AdminAddAdminRequest
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	if err := tenancy.CheckNeededReason("reason", in.Reason); err != nil {
		return err
	}
	held, err := h.org(r)
	if err != nil {
		return err
	}
	if held.ClusterID == "" {
		return errs.New(errs.Conflict, "this organization is still being made; its creator becomes its admin")
	}
	name := in.UserRef.Name
	if _, ok := h.Views.ByName(name); !ok {
		return errs.InvalidField("userRef.name", "there is no person of this name; find people with GET /api/admin/users?q=")
	}
	if _, member := h.Views.Membership(held.ClusterID, tenancy.MembershipName(name, "")); !member {
		if err := tenancy.CheckMemberships(name, h.Views.Index(name)); err != nil {
			return err
		}
	}
	caller := httpmw.CallerOf(r)
	rescue := tenancy.Rescue{User: name, By: caller.User.Name, At: tenancy.DecisionTime(h.Rights.Clock.Now())}
	key, _, err := idempotency.Key(r)
	if err != nil {
		return err
	}
	var fresh api.Match
	if key != "" {
		rescue.Key = tenancy.KeyedUUID(string(caller.User.UID), held.UUID()+"/admins/"+name, key)
		// The first request may have been answered by another replica: the repetition is judged by what kcp has.
		fresh = func(string) error { return nil }
	}
	return api.Change[*v1alpha1.Membership]{
		Intent: httpmw.Intent{Object: name, Facts: audit.Facts{Role: string(v1alpha1.RoleAdmin), Reason: in.Reason}},
		Write: func(ctx context.Context, _ api.Match) (*v1alpha1.Membership, error) {
			var made *v1alpha1.Membership
			_, err := h.Store.ChangeOrganization(ctx, held.Organization, fresh, func(ctx context.Context, o *v1alpha1.Organization) error {
				if err := caller.Valid(); err != nil {
					return err
				}
				changes, err := h.decideRescue(ctx, o, held.ClusterID, rescue)
				if err != nil || changes == nil {
					return err
				}
				o.Spec.MembershipChanges = changes
				markRescue(o, rescue.Key)
				made = tenancy.ChangedMembership(nil, changes[len(changes)-1])
				made.CreationTimestamp = metav1.NewTime(rescue.At.Time).Rfc3339Copy()
				return nil
			})
			if err == nil && made == nil {
				made = tenancy.NewMembership(name, "", v1alpha1.RoleAdmin)
			}
			return made, err
		},
		Refs: func(*v1alpha1.Membership) []tenancy.Ref {
			return []tenancy.Ref{tenancy.OrgRef(held.UUID()), tenancy.UserRef(name)}
		},
		Seen: func(made **v1alpha1.Membership) bool {
			seen, ok := h.Views.Membership(held.ClusterID, tenancy.MembershipName(name, ""))
			if ok = ok && tenancy.LastingAdmin(seen); ok {
				*made = seen
			}
			return ok && h.Bound(name) && tenancy.OrgRole(h.Views.Index(name), held.UUID()).AtLeast(v1alpha1.RoleAdmin)
		},
		View: func(made *v1alpha1.Membership) (any, string) {
			u, _ := h.Views.ByName(name)
			return wire.Member(made, u), made.ResourceVersion
		},
		Code: http.StatusCreated, Late: http.StatusAccepted,
	}.Serve(w, r, &h.Deps)
}

// markRescue writes the name of the request, which is empty without an Idempotency-Key.
func markRescue(o *v1alpha1.Organization, key string) {
	delete(o.Annotations, v1alpha1.RescueAnnotation)
	if key == "" {
		return
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[v1alpha1.RescueAnnotation] = key
}

func (h *Handler) decideRescue(ctx context.Context, o *v1alpha1.Organization, cluster string, r tenancy.Rescue) ([]v1alpha1.MembershipChange, error) {
	list, err := h.Memberships.ListMemberships(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return tenancy.DecideRescue(o, tenancy.LivingOf(list, h.Rights.Clock.Now()), r, h.Active)
}
