package repair

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/verify"
	"github.com/faroshq/kedge-hub/test/framework"
)

// verifies runs kedge-hub verify with the options of a hub.
func verifies(t *testing.T, o server.Options, repair bool) (verify.Report, error) {
	t.Helper()
	c, err := o.Complete()
	require.NoError(t, err)
	out := &strings.Builder{}
	err = server.Verify(t.Context(), c, server.VerifyOptions{Repair: repair, JSON: true, Timeout: framework.Long}, out)
	if errors.Is(err, verify.ErrNotLooked) {
		return verify.Report{}, err
	}
	var r verify.Report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &r))
	require.Equal(t, len(r.Differences) > 0, err != nil, "%v", err)
	require.Empty(t, r.Unseen)
	return r, nil
}

// differing are the differences as "kind name: controller".
func differing(r verify.Report) (texts []string) {
	for _, d := range r.Differences {
		texts = append(texts, d.Kind+" "+d.Name+": "+d.Heals)
	}
	slices.Sort(texts)
	return texts
}

// clean waits until there is no difference.
func clean(t *testing.T, o server.Options) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		r, err := verifies(t, o, false)
		if err == nil && len(r.Differences) > 0 {
			err = fmt.Errorf("%v", r.Differences)
		}
		return err
	})
}

// Everything that the hub derives is compared with kcp: beside a running hub, and without one. Each planted
// difference is found, and healed or named.
func TestVerify(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "verify") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	root := framework.NewRoot()
	start := func() *framework.Hub {
		return framework.StartHub(t, kcp, root, func(o *server.Options) {
			o.DataDir = dir
			o.Spares.Organizations, o.Spares.Workspaces, o.PersonalOrgs = 1, 1, true
		})
	}
	hub := start()
	p := newPlatform(t, root)
	framework.SignUp(t, hub, "alice", "bob")
	s := verified{p: p, org: hub.CreateOrg(t, "alice", "ACME")}
	ws := hub.CreateWorkspace(t, "alice", s.org, "dev")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	old := hub.CreateWorkspace(t, "alice", s.org, "old")
	s.closed = old.Text("clusterID")
	s.plain = hub.CreateWorkspace(t, "alice", s.org, "plain").Text("clusterID")
	// Bob is a guest: a member of the Workspace, and not of the Organization.
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	for range 2 {
		bot := hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/serviceaccounts", map[string]string{"displayName": "CI", "role": "member"}), http.StatusCreated)
		a := hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/serviceaccounts/"+bot.Text("uuid")+"/tokens", `{"expirationSeconds": 3600}`), http.StatusCreated)
		s.bots, s.tokens = append(s.bots, bot.Text("uuid")), append(s.tokens, a.Text("id"))
	}
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, old.Text("uuid"), "", nil), http.StatusOK)
	framework.Eventually(t, framework.Long, func() (err error) {
		s.spare, err = s.spareOrg(t.Context())
		return err
	})

	options := *hub.Options
	clean(t, options)
	hub.Stop(t)
	r, err := verifies(t, options, false)
	require.NoError(t, err)
	require.Empty(t, r.Differences, "without a hub kcp itself is read")
	_, err = verifies(t, options, true)
	require.ErrorContains(t, err, "--repair needs a running hub")

	healed, byHand := s.plant(t)
	r, err = verifies(t, options, false)
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Concat(healed, byHand), differing(r), "%v", r.Differences)

	hub = start()
	framework.Eventually(t, framework.Long, func() error {
		r, err := verifies(t, *hub.Options, true)
		if left := differing(r); err == nil && !slices.Equal(left, slices.Sorted(slices.Values(byHand))) {
			err = fmt.Errorf("left: %v", r.Differences)
		}
		return err
	})
	s.mend(t)
	clean(t, *hub.Options)
}

// verified is a place with differences.
type verified struct {
	p                       platform
	org, ws, cluster, spare string
	// closed is the logical cluster of a deleted Workspace, and plain that of one without bots.
	closed, plain string
	bots, tokens  []string
	// mends undo what no controller heals.
	mends []func() error
}

// spareOrg returns a spare Organization that is ready.
func (s *verified) spareOrg(ctx context.Context) (string, error) {
	var list kcptenancyv1alpha1.WorkspaceList
	err := s.p.Workspaces(s.p.OrgsPath()).GetClient().Get().Resource("workspaces").Param("labelSelector", v1alpha1.SpareLabel).Do(ctx).Into(&list)
	for i := range list.Items {
		if tenancy.SpareOf(&list.Items[i]).KCPReady {
			return list.Items[i].Name, nil
		}
	}
	return "", errors.Join(err, errors.New("no spare Organization is ready"))
}

// plant makes one difference of every kind, past the hub. It returns them as differing does.
func (s *verified) plant(t *testing.T) (healed, byHand []string) {
	t.Helper()
	ctx, p := t.Context(), s.p
	planted := func(err error, text string) {
		t.Helper()
		require.NoError(t, err, text)
		if strings.HasSuffix(text, ": ") {
			byHand = append(byHand, text)
		} else {
			healed = append(healed, text)
		}
	}
	users, in := p.UsersPath(), p.OrgPath(s.org)
	planted(p.Indexes(users).Delete(ctx, "bob", metav1.DeleteOptions{}), "index bob: membershipindex")
	planted(create(ctx, p.Indexes(users), &v1alpha1.UserMembershipIndex{ObjectMeta: metav1.ObjectMeta{Name: "ghost"}}), "index ghost: membershipindex")
	session := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: uuid.NewString()}, Spec: v1alpha1.SessionSpec{
		UserRef: v1alpha1.NamedRef{Name: "ghost"}, Client: v1alpha1.SessionCLI, LastUsedAt: metav1.Now(), ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour)),
	}}
	planted(create(ctx, p.Sessions(users), session), "session "+session.Name+": session")
	planted(edit(ctx, p.Users(users), "alice", func(u *v1alpha1.User) {
		u.Spec.OrgClaims = append(u.Spec.OrgClaims, v1alpha1.Claim{UUID: uuid.NewString()})
	}), "claim alice: user")
	lonely := tenancy.NewOrganization(uuid.NewString(), "Lonely", "alice")
	made, err := p.Organizations(p.OrgsPath()).Create(ctx, lonely, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status.Phase = v1alpha1.PhaseReady
	_, err = p.Organizations(p.OrgsPath()).UpdateStatus(ctx, made, metav1.UpdateOptions{})
	planted(err, "organization "+lonely.Name+": organization")

	ghost := tenancy.NewMembership("ghost", "", v1alpha1.RoleMember)
	planted(create(ctx, p.Memberships(in), ghost), "membership ghost: ")
	nowhere := tenancy.NewMembership("bob", uuid.NewString(), v1alpha1.RoleMember)
	planted(create(ctx, p.Memberships(in), nowhere), "membership "+nowhere.Name+": ")
	s.mends = append(s.mends, func() error {
		return errors.Join(p.Memberships(in).Delete(ctx, ghost.Name, metav1.DeleteOptions{}), p.Memberships(in).Delete(ctx, nowhere.Name, metav1.DeleteOptions{}))
	})

	planted(create(ctx, p.ClusterRoleBindings(s.cluster), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "smuggled", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tenancy.ClusterRoleAdmin},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}},
	}), "binding smuggled: access")
	planted(p.ClusterRoleBindings(s.cluster).Delete(ctx, "kedge:workspace:member:user:bob", metav1.DeleteOptions{}), "binding kedge:workspace:member:user:bob: access")
	planted(edit(ctx, p.ClusterRoles(s.cluster), tenancy.ClusterRoleViewer, func(r *rbacv1.ClusterRole) { r.Rules = r.Rules[:1] }),
		"role "+tenancy.ClusterRoleViewer+": workspace")
	planted(edit(ctx, p.Namespaces(s.cluster), "default", func(n *corev1.Namespace) { n.Labels = nil }), "namespace default: workspace")
	planted(p.PolicyBindings(s.cluster).Delete(ctx, tenancy.PolicyName, metav1.DeleteOptions{}), "policy "+tenancy.PolicyName+": workspace")
	// The hub sees no Secrets any more where their claim is rejected, so there must be none.
	planted(edit(ctx, p.APIBindings(s.plain), s.accessBinding(t), func(b *kcpapisv1alpha2.APIBinding) {
		for i := range b.Spec.PermissionClaims {
			if b.Spec.PermissionClaims[i].Resource == "secrets" {
				b.Spec.PermissionClaims[i].State = kcpapisv1alpha2.ClaimRejected
			}
		}
	}), "apibinding of the hub: workspace")
	planted(p.ServiceAccounts(s.cluster, "default").Delete(ctx, s.bots[0], metav1.DeleteOptions{}), "bot "+s.bots[0]+": bot")
	second := &v1alpha1.Bot{ObjectMeta: metav1.ObjectMeta{Name: s.bots[1]}}
	planted(p.Secrets(s.cluster, "default").Delete(ctx, tenancy.BotTokenSecret(second, s.tokens[1]).Name, metav1.DeleteOptions{}), "bot token "+s.tokens[1]+": bot")
	left := tenancy.NewBot(uuid.NewString(), s.ws, "Left", v1alpha1.RoleMember, "alice", "")
	planted(create(ctx, p.ServiceAccounts(s.cluster, "default"), tenancy.BotAccount(left)), "bot "+left.Name+": ")
	s.mends = append(s.mends, func() error {
		return p.ServiceAccounts(s.cluster, "default").Delete(ctx, left.Name, metav1.DeleteOptions{})
	})

	planted(freeze.New(kcp.ShardAdmin(t), nil, nil, "").Activate(ctx, s.closed), "workspace "+s.workspaceOf(t, s.closed)+": workspace")
	planted(edit(ctx, p.Workspaces(p.OrgsPath()), s.spare, func(ws *kcptenancyv1alpha1.Workspace) { ws.Labels[v1alpha1.SpareLabel] = "other" }),
		"spare "+s.spare+": spare")
	orphan := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: uuid.NewString()}}
	orphan.Spec.Type = &kcptenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}
	planted(create(ctx, p.Workspaces(p.OrgsPath()), orphan), "workspace "+orphan.Name+": ")
	framework.Eventually(t, framework.Long, func() error {
		ws, err := p.Workspaces(p.OrgsPath()).Get(ctx, orphan.Name, metav1.GetOptions{})
		if err == nil && ws.Status.Phase != kcpcorev1alpha1.LogicalClusterPhaseReady {
			err = errors.New("kcp is making it")
		}
		return err
	})
	s.mends = append(s.mends, func() error {
		return p.Workspaces(p.OrgsPath()).Delete(ctx, orphan.Name, metav1.DeleteOptions{})
	})

	// A logical cluster whose Workspace is gone.
	lost, admin := "lost"+strings.ToLower(rand.Text()[:10]), kcp.ShardAdmin(t)
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{
		Name: kcpcorev1alpha1.LogicalClusterName, Annotations: map[string]string{core.LogicalClusterPathAnnotationKey: in + ":" + uuid.NewString()},
	}}
	lc.Spec.Owner = &kcpcorev1alpha1.LogicalClusterOwner{
		APIVersion: kcptenancyv1alpha1.SchemeGroupVersion.String(), Resource: "workspaces", Name: uuid.NewString(), Cluster: s.cluster, UID: "gone",
	}
	planted(create(ctx, admin.LogicalClusters(admin.ClusterURL(lost)), lc), "logical cluster "+lost+": ")
	s.mends = append(s.mends, func() error {
		return admin.LogicalClusters(admin.ClusterURL(lost)).Delete(ctx, lc.Name, metav1.DeleteOptions{})
	})
	return healed, byHand
}

// workspaceOf returns the name of the Workspace of a logical cluster.
func (s *verified) workspaceOf(t *testing.T, cluster string) string {
	t.Helper()
	var list kcptenancyv1alpha1.WorkspaceList
	require.NoError(t, s.p.Workspaces(s.p.OrgPath(s.org)).GetClient().Get().Resource("workspaces").Do(t.Context()).Into(&list))
	i := slices.IndexFunc(list.Items, func(ws kcptenancyv1alpha1.Workspace) bool { return ws.Spec.Cluster == cluster })
	require.GreaterOrEqual(t, i, 0)
	return list.Items[i].Name
}

// accessBinding returns the name of the APIBinding, which kcp made, through which the hub watches the plain Workspace.
func (s *verified) accessBinding(t *testing.T) string {
	t.Helper()
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, s.p.APIBindings(s.plain).GetClient().Get().Resource("apibindings").Do(t.Context()).Into(&list))
	i := slices.IndexFunc(list.Items, func(b kcpapisv1alpha2.APIBinding) bool { return b.Spec.Reference.Export.Name == tenancy.ExportAccess })
	require.GreaterOrEqual(t, i, 0)
	return list.Items[i].Name
}

// mend does by hand what no controller does.
func (s *verified) mend(t *testing.T) {
	t.Helper()
	for _, f := range s.mends {
		require.NoError(t, f())
	}
}

func create[T kcpclients.Object](ctx context.Context, client *kcpclients.Client[T], o T) error {
	_, err := client.Create(ctx, o, metav1.CreateOptions{})
	return err
}

func edit[T kcpclients.Object](ctx context.Context, client *kcpclients.Client[T], name string, change func(T)) error {
	o, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(o)
	_, err = client.Update(ctx, o, metav1.UpdateOptions{})
	return err
}
