package invitations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/invitations"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	inOrg = "/api/orgs/" + apitest.Acme
	inDev = inOrg + "/workspaces/" + apitest.Dev
	// one is the name of the Invitation that tests make, and secret its secret.
	one    = "77777777-7777-4777-8777-777777777777"
	secret = "the-secret-of-the-invitation"
)

// sealer seals by a prefix.
type sealer struct{}

func (sealer) Seal(purpose string, plain []byte) ([]byte, error) {
	return append([]byte(purpose+"|"), plain...), nil
}

func (sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(purpose+"|"))
	if !ok {
		return nil, errors.New("sealed for something else")
	}
	return plain, nil
}

// world is kcp with the caches of the hub. What is decided is carried out at once.
type world struct {
	*apitest.World
	api.Store
	held    map[string]*v1alpha1.Invitation
	now     time.Time
	service *invitations.Service
	cookies httpmw.InvitationCookies
	// counted are the events that were counted.
	counted []string
	http    http.Handler
	// removed hides the Memberships of a person from kcp, and not from the caches.
	removed string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(), held: map[string]*v1alpha1.Invitation{}, now: apitest.Epoch().Time}
	w.cookies = httpmw.InvitationCookies{Keys: sealer{}, Clock: clocktesting.NewFakePassiveClock(apitest.Now())}
	w.service = &invitations.Service{Invitations: w, Places: w, KCP: w, Now: func() time.Time { return w.now }, Await: w.Await}
	deps := w.Deps(t, w, one)
	h := &invitations.Handler{
		Deps: deps, Service: w.service, Cookies: w.cookies, NewID: func() string { return one }, NewSecret: func() string { return secret },
		Count:    func(event string) { w.counted = append(w.counted, event) },
		Followed: func(string, string, string) bool { return true }, LimitLooks: func(next http.Handler) http.Handler { return next },
	}
	w.http = apitest.Router(w.World, h.Mount, h.MountOpen)
	return w
}

// put adds an Invitation to Acme by alice, or to Dev.
func (w *world) put(workspace string, change ...func(*v1alpha1.Invitation)) {
	i := &v1alpha1.Invitation{Spec: v1alpha1.InvitationSpec{
		Role: v1alpha1.RoleMember, Scope: v1alpha1.ScopeOrg, SecretHash: tenancy.InvitationHash(secret), ExpiresAt: metav1.NewTime(w.now.Add(time.Hour)),
		InvitedBy: v1alpha1.Inviter{Name: apitest.Admin, MembershipUID: "uid of " + apitest.Admin},
	}}
	if workspace != "" {
		i.Spec.Scope, i.Spec.WorkspaceRef = v1alpha1.ScopeWorkspace, &v1alpha1.NamedRef{Name: workspace}
	}
	i.Name, i.ResourceVersion, i.CreationTimestamp = one, apitest.FirstVersion, apitest.Epoch()
	for _, f := range change {
		f(i)
	}
	w.held[i.Name] = i
}

func (w *world) Invitation(name string) (*v1alpha1.Invitation, bool) {
	i, ok := w.held[name]
	return i, ok
}

func (w *world) InvitationsFor(email string) (found []*v1alpha1.Invitation) {
	for _, i := range w.held {
		if i.Spec.Email == email {
			found = append(found, i)
		}
	}
	return found
}

func (w *world) InvitationsIn(string) []*v1alpha1.Invitation {
	return slices.Collect(maps.Values(w.held))
}

func (w *world) OrgOfInvitation(*v1alpha1.Invitation) (tenancy.Org, bool) { return w.Org(apitest.Acme) }

func (w *world) GetInvitation(_ context.Context, _, name string) (*v1alpha1.Invitation, error) {
	return w.held[name], nil
}

func (w *world) ListInvitations(context.Context, string) (all []v1alpha1.Invitation, _ error) {
	for _, i := range w.held {
		all = append(all, *i)
	}
	return all, nil
}

func (w *world) GetMembership(ctx context.Context, cluster, name string) (*v1alpha1.Membership, error) {
	if w.removed != "" && strings.HasSuffix(name, w.removed) {
		return nil, nil
	}
	return w.World.GetMembership(ctx, cluster, name)
}

func (w *world) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, _ api.Match, edit api.Edit[*v1alpha1.Organization]) (*v1alpha1.Organization, error) {
	org, _ := w.Org(held.Name)
	o := org.DeepCopy()
	if err := edit(ctx, o); err != nil {
		return nil, err
	}
	for _, c := range o.Spec.InvitationChanges {
		if c.Invitation != nil {
			i := tenancy.NewInvitation(c)
			i.ResourceVersion, i.CreationTimestamp = apitest.FirstVersion, apitest.Epoch()
			w.held[i.Name] = i
			continue
		}
		i := w.held[c.Name].DeepCopy()
		i.Status = tenancy.ChangedInvitation(i, c)
		w.held[c.Name] = i
	}
	for _, c := range o.Spec.MembershipChanges {
		w.Join(c.User, held.Name, c.Workspace, c.Role)
	}
	o.Spec.InvitationChanges, o.Spec.MembershipChanges = nil, nil
	o.Generation++
	w.PutOrg(o, org.ClusterID)
	return o, nil
}

// presenting are the headers of a request with the secret.
func presenting(secret string) http.Header { return http.Header{httpmw.InvitationHeader: {secret}} }

// call is a request about an Invitation by a person, or by nobody.
func call(as, method, below string, header http.Header) apitest.Call {
	return apitest.Call{As: as, Method: method, Path: "/api/invitations/" + one + below, Header: header}
}

// post is a request for an Invitation to Acme.
func post(as, body string) apitest.Call {
	return apitest.Call{As: as, Method: http.MethodPost, Path: inOrg + "/invitations", Org: apitest.Acme, Body: body}
}

// causes are the types of the causes of a refusal.
func causes(s metav1.Status) string {
	if s.Details == nil {
		return ""
	}
	var all []string
	for _, c := range s.Details.Causes {
		all = append(all, string(c.Type))
	}
	return fmt.Sprint(all)
}
