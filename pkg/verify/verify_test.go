package verify_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/verify"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// found are the differences as "kind name: controller", in order.
func found(all []verify.Difference) []string {
	texts := []string{}
	for _, d := range all {
		by := d.Heals
		if by == "" {
			by = "by hand"
		}
		texts = append(texts, d.Kind+" "+d.Name+": "+by)
	}
	return texts
}

func TestLook_findsNothingInAHealthyWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ForgetRequests()
	r, err := verify.Look(t.Context(), w.Source, nil)
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Empty(t, r.Unseen)
	require.Greater(t, r.Compared, 20)
	require.Empty(t, w.Writes(), "a look writes nothing")
}

func TestLook_findsEachPlantedDifference(t *testing.T) {
	t.Parallel()
	bobs := "kedge:workspace:member:user:bob"
	for name, c := range map[string]struct {
		plant func(w *world)
		want  []string
	}{
		"an index is gone":   {func(w *world) { w.Remove(users, named[*v1alpha1.UserMembershipIndex]("bob")) }, []string{"index bob: membershipindex"}},
		"an index of nobody": {func(w *world) { w.Put(users, named[*v1alpha1.UserMembershipIndex]("ghost")) }, []string{"index ghost: membershipindex"}},
		"a forged row": {func(w *world) {
			edit(w, users, named[*v1alpha1.UserMembershipIndex]("bob"), func(i *v1alpha1.UserMembershipIndex) { i.Spec.Entries[0].Role = v1alpha1.RoleAdmin })
		}, []string{"index bob: membershipindex"}},
		"a Membership of nobody": {func(w *world) { w.Put(inAcme, tenancy.NewMembership("ghost", "", v1alpha1.RoleMember)) },
			[]string{"membership ghost: by hand"}},
		"a Membership in no Workspace": {func(w *world) { w.Put(inAcme, tenancy.NewMembership("bob", "w9", v1alpha1.RoleMember)) },
			[]string{"membership w9.bob: by hand"}},
		"a Membership that has ended": {func(w *world) {
			past := metav1.NewTime(time.Now().Add(-time.Hour))
			m := tenancy.NewMembership("bob", "", v1alpha1.RoleMember)
			m.Spec.ExpiresAt = &past
			w.Put(inAcme, m)
		}, []string{"membership bob: organization"}},
		"no member, and so no admin": {func(w *world) {
			w.Remove(inAcme, tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin))
		}, []string{"membership acme: organization", "binding kedge:workspace:admin:user:alice: access", "index alice: membershipindex"}},
		"no admin, but a member": {func(w *world) {
			edit(w, inAcme, tenancy.NewMembership("alice", "", ""), func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleMember })
		}, []string{"membership acme: by hand", "binding kedge:workspace:admin:user:alice: access", "index alice: membershipindex"}},
		"a binding is gone": {func(w *world) { w.Remove(inW1, named[*rbacv1.ClusterRoleBinding](bobs)) }, []string{"binding " + bobs + ": access"}},
		"a binding nobody asked for": {func(w *world) {
			w.Put(inW1, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "smuggled", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}},
				RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
			})
		}, []string{"binding smuggled: access"}},
		"a binding in a namespace nobody asked for": {func(w *world) {
			w.Put(inW1, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "smuggled", Namespace: "default", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub}},
			})
		}, []string{"binding default/smuggled: access"}},
		"a binding for somebody else": {func(w *world) {
			edit(w, inW1, named[*rbacv1.ClusterRoleBinding](bobs), func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "mallory" })
		}, []string{"binding " + bobs + ": access"}},
		"a role without rules": {func(w *world) {
			edit(w, inW1, named[*rbacv1.ClusterRole](tenancy.ClusterRoleViewer), func(r *rbacv1.ClusterRole) { r.Rules = nil })
		}, []string{"role " + tenancy.ClusterRoleViewer + ": workspace"}},
		"a role of a spare is gone": {func(w *world) {
			edit(w, inAcme, named[*kcptenancyv1alpha1.Workspace]("s1"), whole)
			w.Remove(inSpare, named[*rbacv1.ClusterRole](tenancy.ClusterRoleViewer))
		}, []string{"role " + tenancy.ClusterRoleViewer + ": workspace"}},
		"the namespace is gone": {func(w *world) { w.Remove(inW1, named[*corev1.Namespace]("default")) }, []string{"namespace default: workspace"}},
		"the policy is gone": {func(w *world) { w.Remove(inW1, named[*admissionv1.ValidatingAdmissionPolicy](tenancy.PolicyName)) },
			[]string{"policy " + tenancy.PolicyName + ": workspace"}},
		"a weaker policy": {func(w *world) {
			edit(w, inW1, named[*admissionv1.ValidatingAdmissionPolicy](tenancy.PolicyName), func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.Validations = p.Spec.Validations[1:] })
		}, []string{"policy " + tenancy.PolicyName + ": workspace"}},
		"the policy is bound to nothing": {func(w *world) {
			w.Remove(inW1, named[*admissionv1.ValidatingAdmissionPolicyBinding](tenancy.PolicyName))
		}, []string{"policy " + tenancy.PolicyName + ": workspace"}},
		"the binding of the hub's API is gone": {func(w *world) { w.Remove(inW1, apiBinding(tenancy.ExportAccess)) }, []string{"apibinding of the hub: workspace"}},
		"that of an Organization, too":         {func(w *world) { w.Remove(inAcme, apiBinding(tenancy.ExportTenancy)) }, []string{"apibinding of the hub: organization"}},
		"the account of a bot is gone":         {func(w *world) { w.Remove(inW1, inDefault[*corev1.ServiceAccount]("robot")) }, []string{"bot robot: bot"}},
		"another account has its name": {func(w *world) {
			w.Put(inW1, identified(tenancy.BotAccount(robot()), "uid-other"))
		}, []string{"bot robot: bot"}},
		"an account without its labels of display": {func(w *world) {
			edit(w, inW1, inDefault[*corev1.ServiceAccount]("robot"), func(a *corev1.ServiceAccount) { a.Annotations = nil })
		}, []string{"bot robot: bot"}},
		"the binding of a bot is gone": {func(w *world) { w.Remove(inW1, tenancy.BotBinding(robot(), account)) },
			[]string{"binding kedge:workspace:member:bot:robot: bot"}},
		"a bot has a binding too many": {func(w *world) {
			b := robot()
			b.Spec.Role = v1alpha1.RoleAdmin
			w.Put(inW1, tenancy.BotBinding(b, account))
		}, []string{"binding kedge:workspace:admin:bot:robot: bot"}},
		"kcp allows a bot more than its role": {func(w *world) {
			edit(w, inAcme, named[*v1alpha1.Bot]("robot"), func(b *v1alpha1.Bot) { b.Status.AuthorizedRole = v1alpha1.RoleAdmin })
		}, []string{"bot robot: bot"}},
		"a bot of no Workspace": {func(w *world) {
			b := tenancy.NewBot("lost", "w9", "Lost", v1alpha1.RoleMember, "alice", "")
			w.Put(inAcme, b)
		}, []string{"bot lost: bot"}},
		"the Secret of a token is gone":      {func(w *world) { w.Remove(inW1, tenancy.BotTokenSecret(robot(), token)) }, []string{"bot token t1: bot"}},
		"the Secret of a token nobody lists": {func(w *world) { w.Put(inW1, tenancy.BotTokenSecret(robot(), "t2")) }, []string{"bot token kedge-bot-token-t2: bot"}},
		"what is left of a bot": {func(w *world) {
			b := tenancy.NewBot("left", "w1", "Left", v1alpha1.RoleMember, "alice", "")
			w.Put(inW1, tenancy.BotAccount(b))
			w.Put(inW1, tenancy.BotTokenSecret(b, "t3"))
			w.Put(inW1, tenancy.BotBinding(b, "uid-left"))
		}, []string{"binding kedge:workspace:member:bot:left: by hand", "bot left: by hand", "bot token kedge-bot-token-t3: by hand"}},
		"a Session of nobody": {func(w *world) { w.Put(users, login("s9", "ghost")) }, []string{"session s9: session"}},
		"a Session that nobody used for long": {func(w *world) {
			s := login("s9", "bob")
			s.Spec.LastUsedAt = metav1.NewTime(time.Now().Add(-2 * time.Hour))
			w.Put(users, s)
		}, []string{"session s9: session"}},
		"a claim for nothing": {func(w *world) {
			edit(w, users, named[*v1alpha1.User]("alice"), func(u *v1alpha1.User) { u.Spec.OrgClaims = append(u.Spec.OrgClaims, v1alpha1.Claim{UUID: "o9"}) })
		}, []string{"claim alice: user"}},
		"a Workspace without a claim": {func(w *world) {
			edit(w, orgs, named[*v1alpha1.Organization]("acme"), func(o *v1alpha1.Organization) { o.Spec.WorkspaceClaims = nil })
		}, []string{"claim acme: organization"}},
		"an Organization without a workspace": {func(w *world) {
			o := tenancy.NewOrganization("o9", "Nine", "")
			o.Status.Phase = v1alpha1.PhaseReady
			w.Put(orgs, o)
		}, []string{"organization o9: organization"}},
		"an old claim that nobody carried out": {func(w *world) {
			edit(w, users, named[*v1alpha1.User]("bob"), func(u *v1alpha1.User) {
				u.Spec.OrgClaims = []v1alpha1.Claim{tenancy.NewClaim("o9", "Nine", "bob", "", metav1.NewTime(time.Now().Add(-time.Hour)))}
			})
		}, []string{"claim bob: user"}},
		"what is being made is none": {func(w *world) {
			o := tenancy.NewOrganization("o9", "Nine", "alice")
			w.Put(orgs, o)
			w.place(inAcme, "w2", "c-w2", "root:kedge:orgs:acme:w2", nil)
			edit(w, inAcme, named[*kcptenancyv1alpha1.Workspace]("w2"), func(ws *kcptenancyv1alpha1.Workspace) { ws.Annotations = nil })
			edit(w, orgs, named[*v1alpha1.Organization]("acme"), func(o *v1alpha1.Organization) {
				o.Spec.WorkspaceClaims = append(o.Spec.WorkspaceClaims, tenancy.NewClaim("w2", "Two", "alice", "", metav1.Now()))
			})
			edit(w, users, named[*v1alpha1.User]("alice"), func(u *v1alpha1.User) {
				u.Spec.OrgClaims = append(u.Spec.OrgClaims, tenancy.NewClaim("o9", "Nine", "alice", "", metav1.Now()))
			})
			w.Put(inAcme, tenancy.NewBot("new", "w1", "New", v1alpha1.RoleMember, "alice", ""))
		}, nil},
		"a workspace without an Organization": {func(w *world) { w.place(orgs, "o9", "c-o9", "root:kedge:orgs:o9", nil) }, []string{"workspace o9: by hand"}},
		"a Workspace in the workspace of nobody": {func(w *world) { w.place("c-gone", "w9", "c-w9", "root:kedge:orgs:gone:w9", nil) },
			[]string{"workspace w9: by hand"}},
		"a logical cluster without a Workspace": {func(w *world) { w.Put("c-9", logicalCluster(inAcme, "w9", "root:kedge:orgs:acme:w9")) },
			[]string{"logical cluster c-9: by hand"}},
		"a Workspace without a logical cluster": {func(w *world) { w.Remove("c-s0", logicalCluster(orgs, "s0", "")) }, []string{"logical cluster s0: by hand"}},
		"a deactivated Workspace that nobody deleted": {func(w *world) {
			edit(w, inW1, named[*kcpcorev1alpha1.LogicalCluster]("cluster"), deactivate)
		}, []string{"workspace w1: workspace"}},
		"a deleted Workspace that is open": {func(w *world) {
			edit(w, inAcme, named[*kcptenancyv1alpha1.Workspace]("w1"), func(ws *kcptenancyv1alpha1.Workspace) {
				ws.Annotations = map[string]string{v1alpha1.DeletionRequestedAtAnnotation: "2026-01-02T03:04:05Z"}
			})
		}, []string{"workspace w1: workspace", "index bob: membershipindex"}},
		"a spare of an older version": {func(w *world) {
			edit(w, orgs, named[*kcptenancyv1alpha1.Workspace]("s0"), func(ws *kcptenancyv1alpha1.Workspace) { ws.Labels[v1alpha1.SpareLabel] = "old" })
		}, []string{"spare s0: spare"}},
		"a spare too many": {func(w *world) {
			w.place(orgs, "s2", "c-s2", "root:kedge:orgs:s2", map[string]string{v1alpha1.SpareLabel: spareHash})
		}, []string{"spare s2: spare"}},
		"a spare that is reserved for a claim that did not come": {func(w *world) {
			edit(w, orgs, named[*kcptenancyv1alpha1.Workspace]("s0"), func(ws *kcptenancyv1alpha1.Workspace) {
				ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: `{"user":"bob","at":"2026-01-02T03:04:05Z"}`}
			})
		}, []string{"spare s0: spare"}},
		"a spare in a workspace that is gone": {func(w *world) {
			w.place("c-gone", "s9", "c-s9", "root:kedge:orgs:gone:s9", map[string]string{v1alpha1.SpareLabel: spareHash})
		}, []string{"spare s9: by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.plant(w)
			r, err := verify.Look(t.Context(), w.Source, nil)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, found(r.Differences), "%v", r.Differences)
			for _, d := range r.Differences {
				require.NotEqual(t, d.Wanted, d.Found, "%v", d)
				require.NotEmpty(t, d.Wanted, "%v", d)
				require.NotEmpty(t, d.Found, "%v", d)
				require.True(t, strings.HasPrefix(d.Place, "root:kedge:") || d.Place == "c-gone", "%v", d)
				require.NotEqual(t, d.Heals == "", d.ToDo == "", "%v", d)
			}
		})
	}
}

func whole(ws *kcptenancyv1alpha1.Workspace) {
	ws.Annotations = map[string]string{v1alpha1.StatusAnnotation: `{"conditions":[{"type":"AccessReady","status":"False"},{"type":"PolicyEnforced","status":"True"}]}`}
}

func deactivate(lc *kcpcorev1alpha1.LogicalCluster) {
	lc.Annotations[kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey] = "true"
}

// What a controller carries out meanwhile is no difference.
func TestLook_leavesOutWhatIsMendedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Remove(inW1, tenancy.BotBinding(robot(), account))
	listed := 0
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource != "logicalclusters" || r.Query.Get("watch") != "" || r.Query.Get("limit") != "500" {
			return nil
		}
		if listed++; listed == 2 {
			w.Put(inW1, tenancy.BotBinding(robot(), account))
		}
		return nil
	})
	w.Settle = 6 * time.Second
	r, err := verify.Look(t.Context(), w.Source, nil)
	require.NoError(t, err)
	require.Empty(t, r.Differences)
}

func TestLook_asksControllersForARepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Remove(inW1, tenancy.BotBinding(robot(), account))
	w.Put(inAcme, tenancy.NewMembership("ghost", "", v1alpha1.RoleMember))
	var asked []verify.Difference
	r, err := verify.Look(t.Context(), w.Source, func(d verify.Difference) error {
		asked = append(asked, d)
		w.Put(inW1, tenancy.BotBinding(robot(), account))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"binding kedge:workspace:member:bot:robot: bot"}, found(asked))
	require.Equal(t, "c-acme|robot", asked[0].Key.String())
	require.Equal(t, asked, r.Repaired)
	require.Equal(t, []string{"membership ghost: by hand"}, found(r.Differences))

	w.Remove(inW1, tenancy.BotBinding(robot(), account))
	_, err = verify.Look(t.Context(), w.Source, func(verify.Difference) error { return errors.New("no controller") })
	require.ErrorIs(t, err, verify.ErrNotLooked)
	require.ErrorContains(t, err, "no controller")
}

func TestLook_saysWhenItCannotLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Timeout = 300 * time.Millisecond
	w.Remove(providers, named[*kcpapisv1alpha1.APIExportEndpointSlice](tenancy.ExportAccess))
	_, err := verify.Look(t.Context(), w.Source, nil)
	require.ErrorIs(t, err, verify.ErrNotLooked)
}

// Without the shard admin of kcp the rest is compared.
func TestLook_saysWhatItIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit(w, inW1, named[*kcpcorev1alpha1.LogicalCluster]("cluster"), deactivate)
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == "logicalclusters" {
			return apierrors.NewForbidden(kcpcorev1alpha1.Resource("logicalclusters"), "", errors.New("no"))
		}
		return nil
	})
	r, err := verify.Look(t.Context(), w.Source, nil)
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Len(t, r.Unseen, 1)
	out := &strings.Builder{}
	r.Print(out)
	require.Contains(t, out.String(), "not compared: logical clusters")
}

func TestReport_printsBothSides(t *testing.T) {
	t.Parallel()
	out := &strings.Builder{}
	verify.Report{
		Compared: 7,
		Repaired: []verify.Difference{{Kind: verify.KindIndex, Name: "bob", Place: "root:kedge:users", Heals: "membershipindex"}},
		Differences: []verify.Difference{
			{Kind: verify.KindBinding, Name: "b", Place: "root:kedge:orgs:o:w", Wanted: "a", Found: "b", Heals: "access"},
			{Kind: verify.KindWorkspace, Name: "w", Place: "root:kedge:orgs", Wanted: verify.Nothing, Found: "a workspace", ToDo: "delete it"},
		},
	}.Print(out)
	require.Equal(t, `index bob in root:kedge:users was repaired by the controller membershipindex
binding b in root:kedge:orgs:o:w
  wanted: a
  found:  b
  the controller access heals it
workspace w in root:kedge:orgs
  wanted: nothing
  found:  a workspace
  by hand: delete it
7 objects compared, 2 differences
`, out.String())
}
