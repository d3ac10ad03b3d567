package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Deps are what the handlers of the REST API have in common.
type Deps struct {
	Views  Views
	Store  Store
	Rights httpmw.Rights
	// Scopes are middlewares of the routes of an Organization and of a Workspace. Their Creator finds
	// what is accepted and not in the caller's index yet.
	Scopes httpmw.Scopes
	Tree   tenancy.Tree
	// NewUUID makes the identity of a new object that takes no spare.
	NewUUID func() string
	// Spares are workspaces that nobody owns; nil means that there are none.
	Spares Spares
	Clock  clock.PassiveClock
	// Streams count what the end of a right cuts.
	Streams Streams
	// ExternalURL is the URL of the hub, without a trailing slash. CA returns the PEM bundle that
	// clients trust.
	ExternalURL string
	CA          func() []byte

	// The quotas of a User and of an Organization without their own (O-5, O-6).
	DefaultOrgQuota, DefaultWorkspaceQuota int
	// Billing are the rules of cost centers.
	Billing tenancy.BillingRules
	// Graces are the times during which something soft-deleted can be undeleted.
	tenancy.Graces
	// CreateTimeout limits the time that a request waits until what it made is Ready, and FollowTimeout
	// the time that a write waits for the caches.
	CreateTimeout, FollowTimeout time.Duration
}

// Begin begins a write that a rule permits, and reads its body.
func Begin[T any](r *http.Request, rights httpmw.Rights, may func(tenancy.Scope) error) (by httpmw.Author, in T, err error) {
	if by, err = rights.Begin(r, may); err == nil {
		err = httpapi.Read(r, &in)
	}
	return by, in, err
}

// Views are the caches that several handlers read.
type Views interface {
	Tenants
	People
	Members
}

// Tenants are the caches of Organizations and Workspaces.
type Tenants interface {
	Org(uuid string) (tenancy.Org, bool)
	Workspace(org, workspace string) (tenancy.Workspace, bool)
	Workspaces(org string) []tenancy.Workspace
	// UsedWorkspaces counts the Workspaces of an Organization, and its claims, against its quota.
	UsedWorkspaces(org string, claims []v1alpha1.Claim) int
	// Await waits until a condition on the caches holds. It evaluates the condition again after
	// each change that affects one of refs.
	Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

// People are the caches of Users.
type People interface {
	ByName(name string) (*v1alpha1.User, bool)
	OrgsCreatedBy(user string) []string
	// Index returns the UserMembershipIndex of a User.
	Index(user string) []v1alpha1.MembershipIndexEntry
}

// Members are the caches of Memberships, by the logical cluster of their Organization.
type Members interface {
	Membership(orgCluster, name string) (*v1alpha1.Membership, bool)
	MembershipsAt(orgCluster, workspace string) []*v1alpha1.Membership
}

// Spares reserves workspaces for claims with the names of the spares. A reservation is empty if there is
// no spare, and GiveBack then does nothing.
type Spares interface {
	ForOrg(ctx context.Context, user string) tenancy.ReservedSpare
	ForWorkspace(ctx context.Context, org tenancy.Org, user string) tenancy.ReservedSpare
	// GiveBack is for a spare that no claim names, and none will.
	GiveBack(ctx context.Context, spare tenancy.ReservedSpare)
}

// Until waits until the caches show a write, and reports whether they do. If they take longer than
// FollowTimeout, the request succeeds all the same: other checks report caches that lag.
func (d *Deps) Until(r *http.Request, refs []tenancy.Ref, cond func() bool) bool {
	return d.await(r, d.FollowTimeout, refs, cond)
}

// Made returns the status of a created object: 201 when it is ready, and 202 if that takes longer than
// CreateTimeout or the caller does not want to wait. It then waits until the caller can read the object;
// readable is nil if they can.
func (d *Deps) Made(r *http.Request, refs []tenancy.Ref, ready, readable func() bool) (code int) {
	if !Async(r) && d.await(r, d.CreateTimeout, refs, ready) {
		return http.StatusCreated
	}
	if readable != nil {
		d.Until(r, refs, readable)
	}
	return http.StatusAccepted
}

func (d *Deps) await(r *http.Request, timeout time.Duration, refs []tenancy.Ref, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	return d.Views.Await(ctx, refs, cond) == nil
}

// Ready returns the Workspace of the request when it is Ready, and refuses the request if that
// takes longer than FollowTimeout. A Workspace is not Ready for a moment after its members have changed.
// What is done in it goes by what Ready returns: the scope of the request may have a Workspace that
// kcp had not scheduled, and that has no logical cluster.
func (d *Deps) Ready(r *http.Request, scope *tenancy.Scope) (ready tenancy.Workspace, err error) {
	if scope.Workspace.Ready() {
		return *scope.Workspace, nil
	}
	if d.Until(r, []tenancy.Ref{tenancy.WorkspaceRef(scope.Workspace.UUID)}, func() (ok bool) {
		ready, ok = d.Views.Workspace(scope.Org.UUID(), scope.Workspace.UUID)
		return ok && ready.Ready()
	}) {
		return ready, nil
	}
	return tenancy.Workspace{}, NotReady()
}

// NotReady refuses a request to a Workspace that is not Ready.
func NotReady() error {
	return errs.New(errs.Conflict, "the workspace is not ready; repeat the request when its phase is Ready")
}

// The preferences of RFC 7240 that the hub knows.
const (
	respondAsync   = "respond-async"
	representation = "return=representation"
)

// Async reports whether the caller does not want to wait until something made is
// ready (RFC 7240, Prefer: respond-async).
func Async(r *http.Request) bool { return prefers(r, respondAsync) }

// prefers reports whether a request has a preference. Names and values are compared without regard to case,
// which no preference of the hub depends on.
func prefers(r *http.Request, wanted string) bool {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			first, _, _ := strings.Cut(preference, ";")
			name, value, has := strings.Cut(first, "=")
			if name = strings.TrimSpace(name); has {
				name += "=" + strings.Trim(strings.TrimSpace(value), `"`)
			}
			if strings.EqualFold(name, wanted) {
				return true
			}
		}
	}
	return false
}

// MarkOrg requests the deletion of an Organization (O-13), or withdraws the request. The caller is judged by the caches:
// kcp shows the Memberships of a deleted Organization to nobody, and nobody changes them before it is undeleted. An undelete
// is therefore of the deletion that the request saw. judge is asked about the version that is written, because removals that
// were accepted wait in it until the Organization is undeleted.
func (d *Deps) MarkOrg(ctx context.Context, org tenancy.Org, match Match, deleted bool, judge func(*v1alpha1.Organization) error) (tenancy.Org, error) {
	marked, err := d.Store.ChangeOrganization(ctx, org.Organization, match, func(_ context.Context, o *v1alpha1.Organization) (err error) {
		if err := judge(o); err != nil {
			return err
		}
		at := tenancy.Deletable{Noun: "organization", Requested: o.Status.DeletionRequestedAt, Removing: !o.DeletionTimestamp.IsZero()}
		if !deleted {
			if err := at.CheckSeen(org.Status.DeletionRequestedAt); err != nil {
				return err
			}
		}
		o.Status.DeletionRequestedAt, err = at.Mark(deleted, d.Clock.Now())
		return err
	})
	return tenancy.Org{Organization: marked, ClusterID: org.ClusterID}, err
}

// Person finds a User by name.
func (d *Deps) Person(name string) (*v1alpha1.User, error) {
	u, ok := d.Views.ByName(name)
	if !ok {
		return nil, errs.New(errs.NotFound, "there is no person of this name")
	}
	return u, nil
}

// Active reports whether the User of a name can use the hub.
func (d *Deps) Active(user string) bool {
	u, _ := d.Views.ByName(user)
	return tenancy.Active(u)
}

// Rows are the rows of the index of a User, each Organization before its Workspaces. Those of what is soft-deleted
// are there with ?deleted only.
func (d *Deps) Rows(r *http.Request, user string) ([]rest.MembershipRow, error) {
	deleted, err := httpapi.Flag(r, "deleted")
	if err != nil {
		return nil, err
	}
	entries := d.Views.Index(user)
	rows := make([]rest.MembershipRow, 0, len(entries))
	for _, e := range entries {
		if !deleted && e.SoftDeletedAt != nil {
			continue
		}
		row := wire.Row(e, d.Deletion)
		if ws, ok := d.Views.Workspace(e.OrgUUID, e.WorkspaceUUID); ok && ws.Expired() {
			row.PurgeAt = d.PurgeAt(ws)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Expiry reads the member expiresAt of a body. Memberships and Workspaces end by kcp's time.
func (d *Deps) Expiry(raw rest.Field[string]) (*tenancy.Expiry, error) {
	return mergepatch.Expiry(raw, d.Rights.Clock.Now())
}
