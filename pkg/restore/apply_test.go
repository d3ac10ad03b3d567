package restore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	users, orgs, inOrg = "users", "orgs", "cluster-of-org"
	inWorkspace        = "cluster-of-workspace"
	provided           = "6f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0a7"
	kept               = "7f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0a8"
	removed            = "3d8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0d4"
	offer              = "4e8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0e5"
)

// then is the time of what ended, and now that of the restored hub.
var then, now = time.Date(2031, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2031, 3, 2, 12, 0, 0, 0, time.UTC)

// world is a restored kcp, with an Organization, and a hub that replays.
type world struct {
	*kcpfake.Server
	t       *testing.T
	applier restore.Applier
	clock   *clocktesting.FakePassiveClock
	// activated are the clusters that were activated for a Step.
	activated []string
	audited   bytes.Buffer
	saved     []restore.Report
}

func newWorld(t *testing.T) *world {
	w := &world{Server: kcpfake.New(t), t: t}
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	s := store.New(w.Clients().FailFast(), tree, users, orgs)
	keyring, err := session.NewKeyring([][]byte{bytes.Repeat([]byte("k"), session.KeySize)}, rand.Reader)
	require.NoError(t, err)
	clock := clocktesting.NewFakePassiveClock(now)
	sessions, err := session.New(session.Config{
		Keys: keyring, Sessions: s, Grants: s, Devices: s, Users: s, IdleTimeout: time.Hour, MaxAge: time.Hour, Clock: clock, Random: rand.Reader,
		Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	w.clock = clock
	w.applier = restore.Applier{
		Patience: time.Minute,
		Within: func(_ context.Context, cluster string, deactivated func() bool, do func() error) error {
			if deactivated() {
				w.activated = append(w.activated, cluster)
			}
			return do()
		},
		Kept:  func(b *kcpapisv1alpha2.APIBinding) bool { return b.Name == "kept" },
		Views: w, Members: w, Store: s, Sessions: sessions, Audit: audit.New(t.Context(), &w.audited), Clock: clock, RightsClock: clock, Interval: time.Millisecond,
		Save:    func(r restore.Report) error { w.saved = append(w.saved, r); return nil },
		Waiting: func(int, error) { w.carryOut() },
	}
	o := &v1alpha1.Organization{}
	o.Name, o.Annotations = org, map[string]string{v1alpha1.CreatedByAnnotation: "alice"}
	o.Spec.DefaultAccess = v1alpha1.DefaultAccessView
	w.Put(orgs, o)
	for _, name := range []string{"alice", "bob", "carol"} {
		u := &v1alpha1.User{}
		u.Name = name
		w.Put(users, u)
	}
	child := &kcptenancyv1alpha1.Workspace{}
	child.Name, child.Spec.Cluster = ws, inWorkspace
	w.Put(inOrg, child)
	for name, entry := range map[string]string{"acme": provided, "kept": kept} {
		b := &kcpapisv1alpha2.APIBinding{}
		b.Name, b.Annotations = name, map[string]string{v1alpha1.CatalogEntryAnnotation: `{"uuid":"` + entry + `","slug":"x","displayName":"X"}`}
		for _, resource := range []string{"secrets", "configmaps"} {
			c := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimAccepted}
			c.Resource = resource
			b.Spec.PermissionClaims = append(b.Spec.PermissionClaims, c)
		}
		w.Put(inWorkspace, b)
	}
	w.Put(inOrg, tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin))
	w.Put(inOrg, tenancy.NewMembership("bob", "", v1alpha1.RoleAdmin))
	w.Put(inOrg, tenancy.NewWorkspaceMembership("bob", ws, v1alpha1.RoleAdmin, []v1alpha1.RoleRef{view, edit}, true))
	w.bot(bot)
	w.bot(removed)
	for name, user := range map[string]string{"one": "bob", "two": "bob", "four": "alice"} {
		held := &v1alpha1.Session{}
		held.Name, held.Labels = name, map[string]string{v1alpha1.UserLabel: user}
		held.Spec.UserRef.Name, held.Spec.Client, held.Spec.Generation = user, v1alpha1.SessionCLI, 1
		w.Put(users, held)
	}
	e := &v1alpha1.CatalogEntry{}
	e.Name = "entry"
	w.Put(inOrg, e)
	i := &v1alpha1.Invitation{}
	i.Name, i.Spec.ExpiresAt = offer, metav1.NewTime(now.Add(time.Hour))
	w.Put(inOrg, i)
	return w
}

func (w *world) bot(name string) {
	b := tenancy.NewBot(name, ws, "bot", v1alpha1.RoleAdmin, "alice", "")
	for _, id := range []string{"a", "b"} {
		b.Spec.Tokens = append(b.Spec.Tokens, v1alpha1.BotToken{
			ID: id, CreatedAt: metav1.NewTime(then.Add(-time.Hour)), ExpiresAt: metav1.NewTime(now.Add(time.Hour)), Trust: map[string]string{"b": "rule"}[id],
		})
	}
	b.Spec.Trust = []v1alpha1.BotTrust{{ID: "rule"}}
	w.Put(inOrg, b)
}

func (w *world) organization() *v1alpha1.Organization {
	o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: org}}
	require.True(w.t, w.Read(orgs, o))
	return o
}

func (w *world) member(name string) *v1alpha1.Membership {
	m := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !w.Read(inOrg, m) {
		return nil
	}
	return m
}

// carryOut does what the controller of Organizations does.
func (w *world) carryOut() {
	o := w.organization()
	if len(o.Spec.MembershipChanges) == 0 {
		return
	}
	for _, c := range o.Spec.MembershipChanges {
		held := w.member(tenancy.MembershipName(c.User, c.Workspace))
		switch {
		case !tenancy.ChangeApplies(c, held):
		case tenancy.Removes(c):
			w.Remove(inOrg, held)
		default:
			w.Put(inOrg, tenancy.ChangedMembership(held, c))
		}
	}
	o.Spec.MembershipChanges = nil
	w.Put(orgs, o)
}

// The caches have what kcp has.

func (w *world) Org(uuid string) (tenancy.Org, bool) {
	if uuid != org {
		return tenancy.Org{}, false
	}
	return tenancy.Org{Organization: w.organization(), ClusterID: inOrg}, true
}

func (w *world) Workspace(_, workspace string) (tenancy.Workspace, bool) {
	o := &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: workspace}}
	ok := w.Read(inOrg, o)
	return tenancy.WorkspaceOf(org, o), ok
}

func (w *world) Invitation(name string) (*v1alpha1.Invitation, bool) {
	i := &v1alpha1.Invitation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return i, w.Read(inOrg, i)
}

func (w *world) CatalogEntryIn(_, name string) (*v1alpha1.CatalogEntry, bool) {
	e := &v1alpha1.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ok := w.Read(inOrg, e)
	return e, ok
}

func (w *world) OrgOfInvitation(*v1alpha1.Invitation) (tenancy.Org, bool) { return w.Org(org) }

func (w *world) People() (all []*v1alpha1.User) {
	for _, name := range []string{"alice", "bob", "carol"} {
		if u := (&v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}); w.Read(users, u) {
			all = append(all, u)
		}
	}
	return all
}

func (w *world) MembershipsOf(user string) (all []*v1alpha1.Membership) {
	for _, workspace := range []string{"", ws} {
		if m := w.member(tenancy.MembershipName(user, workspace)); m != nil {
			all = append(all, m)
		}
	}
	return all
}

func (w *world) Orgs() (all []tenancy.Org) {
	if o, ok := w.Org(org); ok {
		all = append(all, o)
	}
	return all
}

func (w *world) OrgByCluster(string) (tenancy.Org, bool) { return w.Org(org) }

// run carries out Steps, as a plan of a hub that starts anew.
func (w *world) run(steps ...restore.Step) restore.Report {
	w.t.Helper()
	for i := range steps {
		steps[i].Source, steps[i].At = "request", then
		if steps[i].Org == "" {
			steps[i].Org = org
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := w.applier.Run(ctx, restore.Plan{Steps: steps}, restore.Report{})
	require.NoError(w.t, err)
	require.Len(w.t, steps, len(r.Done)+len(r.Impossible))
	return r
}

// state is all that kcp has.
func (w *world) state() string {
	var all []string
	for cluster, kinds := range map[string][][2]string{
		users: {{v1alpha1.GroupName, "users"}, {v1alpha1.GroupName, "sessions"}, {"coordination.k8s.io", "leases"}},
		orgs:  {{v1alpha1.GroupName, "organizations"}},
		inOrg: {{v1alpha1.GroupName, "memberships"}, {v1alpha1.GroupName, "bots"}, {v1alpha1.GroupName, "invitations"}, {"tenancy.kcp.io", "workspaces"}},
	} {
		for _, kind := range kinds {
			raw, err := json.Marshal(w.List(cluster, kind[0], kind[1]))
			require.NoError(w.t, err)
			all = append(all, kind[1]+" "+string(raw))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestRun_endsWhatEndedAfterTheBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	soon := now.Add(time.Hour)
	botNamed := func(name string) (*v1alpha1.Bot, bool) {
		b := &v1alpha1.Bot{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return b, w.Read(inOrg, b)
	}
	sessionNamed := func(name string) *v1alpha1.Session {
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.True(t, w.Read(users, s))
		return s
	}
	person := func(name string) *v1alpha1.User {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.True(t, w.Read(users, u))
		return u
	}
	bound := func(name string) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if !w.Read(inWorkspace, b) {
			return nil
		}
		return b
	}
	for _, c := range []struct {
		step  restore.Step
		ended func() bool
	}{
		{restore.Step{Kind: restore.LimitMember, Workspace: ws, Object: "bob", Facts: audit.Facts{Role: "member", Roles: &[]string{"view"}}}, func() bool {
			m := w.member(ws + ".bob")
			return m.Spec.Role == v1alpha1.RoleMember && !m.Spec.Sudo && len(m.Spec.Roles) == 1
		}},
		{restore.Step{Kind: restore.LimitMember, Object: "bob", Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}}, func() bool {
			return w.member("bob").Spec.ExpiresAt != nil
		}},
		{restore.Step{Kind: restore.RemoveMember, Object: "bob", Facts: audit.Facts{Cascade: true}}, func() bool {
			return w.member("bob") == nil && w.member(ws+".bob") == nil && w.member("alice") != nil
		}},
		{restore.Step{Kind: restore.LimitBot, Workspace: ws, Object: bot, Facts: audit.Facts{Role: "viewer"}}, func() bool {
			b, _ := botNamed(bot)
			return b.Spec.Role == v1alpha1.RoleViewer
		}},
		{restore.Step{Kind: restore.RemoveTrust, Workspace: ws, Object: bot, Facts: audit.Facts{Trust: "rule"}}, func() bool {
			b, _ := botNamed(bot)
			return len(b.Spec.Trust) == 0 && len(b.Spec.Tokens) == 1
		}},
		{restore.Step{Kind: restore.RevokeToken, Workspace: ws, Object: removed, Facts: audit.Facts{Token: "new", Rotated: "a"}}, func() bool {
			b, _ := botNamed(removed)
			return len(b.Spec.Tokens) == 1
		}},
		{restore.Step{Kind: restore.RevokeTokens, Workspace: ws, Object: bot, Facts: audit.Facts{All: true}}, func() bool {
			b, _ := botNamed(bot)
			return len(b.Spec.Tokens) == 0 && b.Spec.Generation == 1
		}},
		{restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: removed}, func() bool {
			b, ok := botNamed(removed)
			return !ok || !b.DeletionTimestamp.IsZero()
		}},
		{restore.Step{Kind: restore.UseJobToken, Object: bot, Facts: audit.Facts{JobToken: "hash", JobTokenExpiresAt: &soon}}, func() bool {
			return len(w.List(users, "coordination.k8s.io", "leases")) == 1
		}},
		{restore.Step{Kind: restore.AdvanceSession, Object: "one", Facts: audit.Facts{Generation: 9}}, func() bool { return sessionNamed("one").Spec.Generation == 9 }},
		// Of the tokens that it got after the backup only the time is known.
		{restore.Step{Kind: restore.EndSession, Object: "two"}, func() bool {
			return sessionNamed("two").Spec.EndedAt != nil && person("bob").Spec.TokensValidAfter != nil
		}},
		{restore.Step{Kind: restore.EndSessions, Object: "alice"}, func() bool {
			return sessionNamed("four").Spec.EndedAt != nil && person("alice").Spec.TokensValidAfter.Time.Equal(then)
		}},
		{restore.Step{Kind: restore.EndSession, Object: "made-after-the-backup", Person: "carol"}, func() bool {
			return person("carol").Spec.TokensValidAfter != nil
		}},
		{restore.Step{Kind: restore.BindInvitation, Object: offer, Facts: audit.Facts{Issuer: "i", Subject: "s"}}, func() bool {
			c, _ := tenancy.InvitationChangeOf(w.organization(), offer)
			return c.SignedUp == tenancy.IdentityHash("i", "s")
		}},
		{restore.Step{Kind: restore.AnswerInvitation, Object: offer, State: v1alpha1.InvitationAccepted, By: "dora"}, func() bool {
			c, _ := tenancy.InvitationChangeOf(w.organization(), offer)
			return c.State == v1alpha1.InvitationAccepted && len(w.organization().Spec.MembershipChanges) == 0
		}},
		{restore.Step{Kind: restore.LimitProvider, Workspace: ws, Object: provided, Facts: audit.Facts{RejectedClaims: []string{"secrets"}}}, func() bool {
			c := bound("acme").Spec.PermissionClaims
			return c[0].State == kcpapisv1alpha2.ClaimRejected && c[1].State == kcpapisv1alpha2.ClaimAccepted
		}},
		{restore.Step{Kind: restore.DisableProvider, Workspace: ws, Object: provided}, func() bool { return bound("acme") == nil && bound("kept") != nil }},
		{restore.Step{Kind: restore.SuspendPerson, Object: "bob"}, func() bool { return person("bob").Spec.Registration == v1alpha1.RegistrationPending }},
		{restore.Step{Kind: restore.RejectPerson, Object: "bob"}, func() bool { return person("bob").Spec.Registration == v1alpha1.RegistrationRejected }},
		{restore.Step{Kind: restore.LimitOrg, Facts: audit.Facts{DefaultAccess: "none", WorkspaceCreation: "admin", CatalogEntryCreation: "admin"}}, func() bool {
			o := w.organization().Spec
			return o.DefaultAccess == v1alpha1.DefaultAccessNone && o.WorkspaceCreation == v1alpha1.WhoAdmin && o.CatalogEntryCreation == v1alpha1.WhoAdmin
		}},
		{restore.Step{Kind: restore.DeleteEntry, Object: "entry"}, func() bool { _, ok := w.CatalogEntryIn(org, "entry"); return !ok }},
		{restore.Step{Kind: restore.EndWorkspace, Workspace: ws, Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}}, func() bool {
			ws, _ := w.Workspace(org, ws)
			return ws.ExpiresAt != nil
		}},
		{restore.Step{Kind: restore.DeleteWorkspace, Workspace: ws}, func() bool {
			ws, _ := w.Workspace(org, ws)
			return ws.DeletionRequestedAt != nil && ws.DeletionRequestedAt.Time.Equal(then)
		}},
		{restore.Step{Kind: restore.DeletePerson, Object: "bob"}, func() bool {
			at := person("bob").Status.DeletionRequestedAt
			return at != nil && at.Time.Equal(then)
		}},
		{restore.Step{Kind: restore.DeleteOrg}, func() bool {
			at := w.organization().Status.DeletionRequestedAt
			return at != nil && at.Time.Equal(then)
		}},
	} {
		name := string(c.step.Kind)
		require.False(t, c.ended(), "%s: the backup has it", name)
		r := w.run(c.step)
		require.Empty(t, r.Impossible, name)
		require.True(t, c.ended(), name)
		require.Contains(t, w.audited.String(), `"action":"replay `+name+`"`)
		require.Contains(t, w.audited.String(), `"clientRequest":"request"`)
		before := w.state()
		if c.step.Kind == restore.DisableProvider {
			continue
		}
		w.run(c.step)
		require.Equal(t, before, w.state(), "%s: a second time", name)
	}
	require.NotEmpty(t, w.saved)
	r := w.run(restore.Step{Kind: restore.SuspendPerson, Object: "bob"}, restore.Step{Kind: restore.DisableProvider, Workspace: ws, Object: kept})
	require.Equal(t, v1alpha1.RegistrationRejected, person("bob").Spec.Registration, "the lower of the two")
	require.Len(t, r.Impossible, 1, "what every Workspace has stays")
	require.NotNil(t, bound("kept"))
}

// The hub makes the creator of an Organization without members its admin. Nobody may get back so what they lost.
func TestRun_leavesTheCreatorNoOrgToInherit(t *testing.T) {
	t.Parallel()
	alice := restore.Step{Kind: restore.RemoveMember, Object: "alice"}
	bob := restore.Step{Kind: restore.RemoveMember, Object: "bob"}
	for name, c := range map[string]struct {
		given func(w *world)
		steps []restore.Step
		stays bool
	}{
		"another is removed":         {steps: []restore.Step{bob}, stays: true},
		"promoted":                   {steps: []restore.Step{{Kind: restore.LimitMember, Object: "alice", Facts: audit.Facts{Role: "admin"}}}, stays: true},
		"removed from a workspace":   {steps: []restore.Step{{Kind: restore.RemoveMember, Workspace: ws, Object: "alice"}}, stays: true},
		"removed":                    {steps: []restore.Step{alice}},
		"removed with another":       {steps: []restore.Step{alice, bob}},
		"removed after another":      {steps: []restore.Step{bob, alice}},
		"demoted":                    {steps: []restore.Step{{Kind: restore.LimitMember, Object: "alice", Facts: audit.Facts{Role: "member"}}}},
		"ends":                       {steps: []restore.Step{{Kind: restore.LimitMember, Object: "alice", Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}}}},
		"left before, others follow": {given: func(w *world) { w.Remove(inOrg, w.member("alice")) }, steps: []restore.Step{bob}},
		"was demoted before, others follow": {given: func(w *world) {
			m := w.member("alice")
			m.Spec.Role = v1alpha1.RoleMember
			w.Put(inOrg, m)
		}, steps: []restore.Step{bob}},
		"has an end, others follow": {given: func(w *world) {
			m := w.member("alice")
			m.Spec.ExpiresAt = &metav1.Time{Time: now.Add(time.Hour)}
			w.Put(inOrg, m)
		}, steps: []restore.Step{bob}},
		"not yet admin in the backup": {given: func(w *world) { w.Remove(inOrg, w.member("alice")) }, steps: []restore.Step{alice}},
		"not yet admin in the backup, and one whom it does not have": {given: func(w *world) {
			w.Remove(inOrg, w.member("alice"))
		}, steps: []restore.Step{{Kind: restore.RemoveMember, Object: "carol"}}, stays: true},
	} {
		w := newWorld(t)
		if c.given != nil {
			c.given(w)
		}
		r := w.run(c.steps...)
		require.Empty(t, r.Impossible, name)
		require.Equal(t, c.stays, w.organization().Annotations[v1alpha1.CreatedByAnnotation] == "alice", name)
		before := w.state()
		w.run(c.steps...)
		require.Equal(t, before, w.state(), "%s: a second time", name)
	}
}

// What was accepted before the backup is made by its controller, and ended then.
func TestRun_waitsForWhatIsMadeOfTheBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const made = "5f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0f6"
	o := w.organization()
	o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: made}}
	o.Spec.BotChanges = []v1alpha1.BotChange{{Name: made, Workspace: ws, Role: v1alpha1.RoleMember, By: "alice", RequestedAt: metav1.NewMicroTime(then)}}
	w.Put(orgs, o)
	w.applier.Waiting = func(left int, why error) {
		if left != 2 {
			return
		}
		require.Error(t, why)
		child := &kcptenancyv1alpha1.Workspace{}
		child.Name = made
		w.Put(inOrg, child)
		w.bot(made)
		o := w.organization()
		o.Spec.BotChanges = nil
		w.Put(orgs, o)
	}
	r := w.run(restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: made}, restore.Step{Kind: restore.DeleteWorkspace, Workspace: made})
	require.Empty(t, r.Impossible)
	child, _ := w.Workspace(org, made)
	require.NotNil(t, child.DeletionRequestedAt)
	b := &v1alpha1.Bot{ObjectMeta: metav1.ObjectMeta{Name: made}}
	require.True(t, !w.Read(inOrg, b) || !b.DeletionTimestamp.IsZero())
}

// The Organization has accepted, and not carried out, when the backup is made.
func TestRun_outlastsAGrantThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.organization()
	bob := w.member("bob")
	require.NotNil(t, bob)
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{
		{User: "carol", Role: v1alpha1.RoleAdmin, RequestedAt: metav1.NewMicroTime(then)},
		{User: "bob", UID: bob.UID, Generation: bob.Generation, Role: v1alpha1.RoleAdmin, ExpiresAt: &metav1.Time{Time: now.Add(time.Hour)}, RequestedAt: metav1.NewMicroTime(then)},
	}
	w.Put(orgs, o)
	w.run(restore.Step{Kind: restore.RemoveMember, Object: "carol"}, restore.Step{Kind: restore.LimitMember, Object: "bob", Facts: audit.Facts{Role: "viewer"}})
	require.Nil(t, w.member("carol"))
	require.Equal(t, v1alpha1.RoleViewer, w.member("bob").Spec.Role)
}

func TestRun_listsWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const other = "5f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0f6"
	r := w.run(
		restore.Step{Kind: restore.RemoveMember, Org: other, Object: "bob"}, restore.Step{Kind: restore.DeleteBot, Object: other},
		restore.Step{Kind: restore.EndSession, Object: other}, restore.Step{Kind: restore.RejectPerson, Object: other},
		restore.Step{Kind: restore.AnswerInvitation, Object: other}, restore.Step{Kind: restore.DeleteWorkspace, Workspace: other},
		restore.Step{Kind: restore.DeleteEntry, Object: "other"}, restore.Step{Kind: restore.DisableProvider, Object: "entry"}, restore.Step{Kind: "new"},
		restore.Step{Kind: restore.EndSessions, Object: other},
	)
	require.Empty(t, r.Done)
	for _, i := range r.Impossible {
		require.NotEmpty(t, i.Reason, i.Kind)
	}
}

// Who was removed from an Organization that the backup has as deleted is no member when it is undeleted.
func TestRun_endsWhatEndedInADeletedOrg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.organization()
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{
		{User: "bob", Role: v1alpha1.RoleAdmin, RequestedAt: metav1.NewMicroTime(then)}, {User: "dora", Role: v1alpha1.RoleMember, RequestedAt: metav1.NewMicroTime(then)},
	}
	o.Spec.BotChanges = []v1alpha1.BotChange{{Name: bot, Workspace: ws, Role: v1alpha1.RoleAdmin, By: "alice", RequestedAt: metav1.NewMicroTime(then)}}
	o.Status.DeletionRequestedAt = &metav1.Time{Time: then}
	w.Put(orgs, o)
	// No controller carries anything out.
	w.applier.Waiting = func(int, error) {}
	steps := []restore.Step{
		{Kind: restore.LimitMember, Object: "alice", Facts: audit.Facts{Role: "viewer"}},
		{Kind: restore.RemoveMember, Object: "bob", Facts: audit.Facts{Cascade: true}},
		{Kind: restore.LimitBot, Workspace: ws, Object: bot, Facts: audit.Facts{Role: "viewer"}},
		{Kind: restore.AnswerInvitation, Object: offer, State: v1alpha1.InvitationRevoked},
		{Kind: restore.EndWorkspace, Workspace: ws, Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}},
		{Kind: restore.DisableProvider, Workspace: ws, Object: provided},
		{Kind: restore.DeleteEntry, Object: "entry"},
	}
	r := w.run(steps...)
	require.Empty(t, r.Impossible)
	require.Equal(t, v1alpha1.RoleViewer, w.member("alice").Spec.Role)
	require.Nil(t, w.member("bob"))
	require.Nil(t, w.member(ws+".bob"))
	o = w.organization()
	require.Len(t, o.Spec.MembershipChanges, 1, "what others were granted stays")
	require.Empty(t, o.Spec.BotChanges)
	require.Empty(t, o.Annotations[v1alpha1.CreatedByAnnotation], "its creator is an admin no longer")
	require.Contains(t, w.activated, inOrg)
	require.Contains(t, w.activated, inWorkspace)
	before := w.state()
	w.run(steps[:3]...)
	require.Equal(t, before, w.state(), "a second time")
}

// A hub does not stay in restore mode for ever because of one Step. It waits for kcp as long as it takes.
func TestRun_givesUpAStepThatGoesOnFailing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var refusal error = apierrors.NewServiceUnavailable("a moment")
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == "bots" && r.Verb != "get" {
			return refusal
		}
		return nil
	})
	passes := 0
	w.applier.Waiting = func(left int, why error) {
		w.carryOut()
		if left == 0 {
			return
		}
		require.Error(t, why)
		w.clock.SetTime(w.clock.Now().Add(40 * time.Second))
		if passes++; passes == 2 {
			refusal = apierrors.NewBadRequest("never")
		}
		require.Less(t, passes, 20)
	}
	r := w.run(restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: bot}, restore.Step{Kind: restore.DeleteWorkspace, Workspace: ws})
	require.Greater(t, passes, 2)
	require.Len(t, r.GivenUp(), 1)
	require.Equal(t, restore.DeleteBot, r.GivenUp()[0].Kind)
	require.Contains(t, r.Impossible[0].Reason, "given up after 1m0s")
	require.Len(t, r.Done, 1, "what comes last is done nevertheless")
}

// A hub that is killed in the middle goes on where it was, and one that cannot reach kcp does not pass over anything.
func TestRun_goesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plan := restore.Plan{Steps: []restore.Step{
		{Kind: restore.RejectPerson, Source: "1", Object: "carol"}, {Kind: restore.EndSession, Source: "2", Object: "one"}, {Kind: restore.DeleteOrg, Source: "3", Org: org},
	}}
	down := true
	w.FailBefore(func(r kcpfake.Request) error {
		if down && r.Resource == "sessions" {
			return apierrors.NewServiceUnavailable("a moment")
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	w.applier.Waiting = func(left int, why error) {
		require.Equal(t, 2, left, "the organization is deleted last")
		require.Error(t, why)
		cancel()
	}
	_, err := w.applier.Run(ctx, plan, restore.Report{})
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, w.organization().Status.DeletionRequestedAt)
	require.Len(t, w.saved, 1)
	dir := t.TempDir()
	require.NoError(t, restore.WriteReport(dir, w.saved[0]))
	r, err := restore.ReadReport(dir)
	require.NoError(t, err)
	down = false
	w.applier.Waiting = func(int, error) {}
	w.ForgetRequests()
	r, err = w.applier.Run(t.Context(), plan, r)
	require.NoError(t, err)
	require.Len(t, r.Done, 3)
	for _, request := range w.Requests() {
		require.NotEqual(t, "carol", request.Name, "it is done")
	}
}
