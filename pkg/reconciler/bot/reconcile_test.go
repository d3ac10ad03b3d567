package bot_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/bot"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	name = "11111111-1111-4111-8111-111111111111"
	org  = "org1"
	ws   = "ws1"
)

// world has one Bot. Its objects are put into a kcp before each convergence, and read from it afterwards.
type world struct {
	kcptest.Calls
	clock *clocktesting.FakePassiveClock
	// earlier is how much earlier it may be at kcp.
	earlier   time.Duration
	bot       *v1alpha1.Bot
	workspace tenancy.Workspace
	deleted   bool
	known     bool
	exists    bool
	account   *corev1.ServiceAccount
	bindings  map[string]*rbacv1.ClusterRoleBinding
	secrets   map[string]*corev1.Secret
	uids      int
	// behind says that kcp authorizes by the former role still. excess are bindings that tenants
	// made, and unanswered is the error of a question to kcp.
	behind     bool
	excess     []string
	unanswered error
}

func newWorld() *world {
	w := &world{
		clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
		bot:   tenancy.NewBot(name, "w", "CI", v1alpha1.RoleMember, "alice", ""),
		known: true, exists: true,
		bindings: map[string]*rbacv1.ClusterRoleBinding{}, secrets: map[string]*corev1.Secret{},
	}
	w.workspace = tenancy.Workspace{UUID: "w", ClusterID: ws, KCPReady: true}
	w.bot.Generation = 1
	return w
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprint("uid-", w.uids))
}

// OrgByCluster and Workspace are those of the views.
func (w *world) OrgByCluster(cluster string) (tenancy.Org, bool) {
	o := tenancy.NewOrganization("o", "O", "alice")
	if w.deleted {
		o.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
	}
	return tenancy.Org{Organization: o, ClusterID: org}, cluster == org
}

func (w *world) Workspace(of, uuid string) (tenancy.Workspace, bool) {
	return w.workspace, w.known && of == "o" && uuid == "w"
}

// rights is what the fake kcp answers about rights.
type rights struct{ *world }

func (r rights) Followed(_ context.Context, caller, role string, left tenancy.Entry) (bool, error) {
	if caller != tenancy.BotKey(r.bot.Status.ServiceAccountUID) || role != tenancy.ClusterRoleAdmin || left.Role != v1alpha1.RoleMember || left.Workspace.ClusterID != ws {
		return false, fmt.Errorf("asked about %s, %s and %v", caller, role, left)
	}
	return !r.behind, r.unanswered
}

func (r rights) Excess(_ context.Context, bot string, _ tenancy.Entry) ([]string, error) {
	if bot != name {
		return nil, fmt.Errorf("asked about %s", bot)
	}
	return r.excess, nil
}

func (w *world) converge(t *testing.T) (time.Duration, error) {
	t.Helper()
	k := kcptest.New(t)
	k.Clock.SetTime(w.clock.Now())
	if w.bot != nil {
		k.Put(org, w.bot)
	}
	if w.account != nil {
		k.Put(ws, w.account)
	}
	for _, b := range w.bindings {
		k.Put(ws, b)
	}
	for _, s := range w.secrets {
		k.Put(ws, s)
	}
	if w.exists {
		k.PutWorkspace(org, "w", ws)
	}
	k.Break(w.Fails-w.Made, w.Late)
	earliest := clocktesting.NewFakePassiveClock(w.clock.Now().Add(-w.earlier))
	work := bot.New(bot.Config{Objects: k.Stored, Clock: earliest, RightsClock: w.clock, Views: w, Rights: rights{w}})
	after, err := k.Converge(t, func() (controller.Result, error) { return work(t.Context(), controller.Key{Cluster: org, Name: name}) })
	w.Made += len(k.Writes())
	w.Did = append(w.Did, k.Did()...)
	w.bot, _ = k.Stored.Bots.Get(org, name)
	w.account, _ = k.Stored.Accounts.Get(ws, "default/"+name)
	clear(w.bindings)
	for _, b := range k.Stored.RBAC.Bindings.InCluster(ws) {
		w.bindings[b.Name] = b
	}
	clear(w.secrets)
	for _, s := range k.Stored.Secrets.InCluster(ws) {
		w.secrets[s.Name] = s
	}
	return after, err
}

func (w *world) converged(t *testing.T) time.Duration {
	t.Helper()
	after, err := w.converge(t)
	require.NoError(t, err)
	return after
}

// issue adds a token with its Secret, as the API does.
func (w *world) issue(id string, life time.Duration) {
	s := tenancy.BotTokenSecret(w.bot, id)
	s.UID = w.uid()
	w.secrets[s.Name] = s
	now := metav1.NewTime(w.clock.Now())
	w.bot = w.bot.DeepCopy()
	w.bot.Generation++
	w.bot.Spec.Tokens = append(w.bot.Spec.Tokens, v1alpha1.BotToken{
		ID: id, CreatedAt: now, ExpiresAt: metav1.NewTime(now.Add(life)), SecretUID: string(s.UID),
	})
}

func (w *world) ids() (ids []string) {
	for _, token := range w.bot.Spec.Tokens {
		ids = append(ids, token.ID)
	}
	return ids
}

// change edits the Bot as the API does.
func (w *world) change(edit func(*v1alpha1.Bot)) {
	w.bot = w.bot.DeepCopy()
	w.bot.Generation++
	edit(w.bot)
}

// remove deletes the Bot as the API does.
func (w *world) remove() {
	w.bot = w.bot.DeepCopy()
	w.bot.DeletionTimestamp = &metav1.Time{Time: w.clock.Now()}
}

func TestBot_getsAnAccountWithItsRole(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, w.bot.Status.Phase)
	require.Equal(t, string(w.account.UID), w.bot.Status.ServiceAccountUID)
	require.True(t, tenancy.AccountReady(w.bot))
	require.Len(t, w.bindings, 1)
	w.Did = nil
	w.converged(t)
	require.Empty(t, w.Did, "it is quiet when all is as desired")

	w.change(func(b *v1alpha1.Bot) { b.Spec.Role, b.Spec.DisplayName = v1alpha1.RoleAdmin, "Deployer" })
	w.converged(t)
	require.Equal(t, []string{
		"patch serviceaccounts/default/" + name + " in ws1", "patch bots/" + name + "/status in org1",
		"delete clusterrolebindings/kedge:workspace:member:bot:" + name + " in ws1", "create clusterrolebindings/kedge:workspace:admin:bot:" + name + " in ws1", "patch bots/" + name + "/status in org1",
	}, w.Did,
		"the higher role is recorded before it is given, and the lesser right goes before the other comes")
	require.Equal(t, "Deployer", w.account.Annotations[v1alpha1.DisplayNameAnnotation])
}

// kcp's clock was set forward: a token ends by it, and does not come alive when the clock is set back.
func TestBot_losesATokenByTheTimeOfKCP(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.issue("a", time.Hour)
	w.converged(t)
	require.Equal(t, []string{"a"}, w.ids())
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.earlier = time.Hour
	w.converged(t)
	require.Empty(t, w.ids())
	require.Empty(t, w.secrets)
}

// Whichever call fails, and whether or not kcp carried it out, the Bot becomes the same.
func TestBot_convergesFromEveryCallThatFails(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld()
			w.Fails, w.Late = n, late
			failed := 0
			for range 3 {
				if _, err := w.converge(t); err != nil {
					require.ErrorContains(t, err, kcpfake.Broken)
					failed++
				}
			}
			require.Equal(t, v1alpha1.PhaseReady, w.bot.Status.Phase, "call %d, late %v", n, late)
			require.Equal(t, string(w.account.UID), w.bot.Status.ServiceAccountUID)
			require.Len(t, w.bindings, 1)
			if failed == 0 {
				require.Equal(t, 4, n, "the control: every call has failed once")
				break
			}
		}
	}
}

func TestBot_revokeAllReplacesTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.issue("a", time.Hour)
	w.converged(t)
	before := w.bot.Status.ServiceAccountUID
	w.change(func(b *v1alpha1.Bot) { b.Spec.Generation++; b.Spec.Tokens = nil })
	require.False(t, tenancy.AccountReady(w.bot), "no token is accepted meanwhile")
	w.converged(t)
	require.NotEqual(t, before, w.bot.Status.ServiceAccountUID)
	require.True(t, tenancy.AccountReady(w.bot))
	require.Empty(t, w.secrets)
	for _, b := range w.bindings {
		require.Equal(t, w.account.UID, b.OwnerReferences[0].UID)
	}
}

func TestBot_aDeletedAccountTakesItsTokensAlong(t *testing.T) {
	t.Parallel()
	for what, replace := range map[string]func(*world){
		"deleted":  func(w *world) { w.account = nil },
		"replaced": func(w *world) { w.account = w.account.DeepCopy(); w.account.UID = "of somebody" },
	} {
		w := newWorld()
		w.converged(t)
		w.issue("a", time.Hour)
		w.converged(t)
		replace(w)
		w.converged(t)
		require.Empty(t, w.bot.Spec.Tokens, what)
		require.EqualValues(t, 1, w.bot.Spec.Generation, what)
		require.True(t, tenancy.AccountReady(w.bot), what)
		require.Empty(t, w.secrets, what)
	}
}

func TestBot_healsWhatTenantsAlter(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.account.Annotations[v1alpha1.RoleAnnotation] = "admin"
	clear(w.bindings)
	w.converged(t)
	require.Equal(t, "member", w.account.Annotations[v1alpha1.RoleAnnotation])
	require.Len(t, w.bindings, 1)
}

func TestBot_tokensEndWithTheirSecretAndTheirTime(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.issue("short", time.Hour)
	w.issue("long", 3*time.Hour)
	w.issue("lost", 3*time.Hour)
	require.Equal(t, time.Hour, w.converged(t))
	require.Equal(t, []string{"short", "long", "lost"}, w.ids())
	require.Equal(t, w.clock.Now().Unix(), w.bot.Status.LastTokenIssuedAt.Unix())
	require.NotEmpty(t, w.account.Annotations[v1alpha1.LastTokenIssuedAtAnnotation])

	delete(w.secrets, tenancy.BotTokenSecret(w.bot, "lost").Name)
	w.converged(t)
	require.Equal(t, []string{"short", "long"}, w.ids())
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	require.Equal(t, 2*time.Hour, w.converged(t))
	require.Equal(t, []string{"long"}, w.ids())
	require.Len(t, w.secrets, 1)

	w.change(func(b *v1alpha1.Bot) { b.Spec.Tokens = nil })
	w.converged(t)
	require.Empty(t, w.secrets, "the Secret of a revoked token goes")
}

// The hub stopped after it had written down that it would issue a token.
func TestBot_cleansUpATokenThatWasNeverGivenOut(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.issue("half", time.Hour)
	w.bot.Spec.Tokens[0].SecretUID = ""
	require.Equal(t, tenancy.BotWriteTime, w.converged(t))
	require.Len(t, w.secrets, 1, "it may still be written")
	w.clock.SetTime(w.clock.Now().Add(tenancy.BotWriteTime))
	w.converged(t)
	require.Empty(t, w.bot.Spec.Tokens)
	require.Empty(t, w.secrets)
	require.Nil(t, w.bot.Status.LastTokenIssuedAt)
}

func TestBot_deletionRemovesAllOfIt(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		w := newWorld()
		w.converged(t)
		w.issue("a", time.Hour)
		w.converged(t)
		w.Made, w.Fails = 0, n
		w.remove()
		failed := 0
		for w.bot != nil {
			if _, err := w.converge(t); err != nil {
				require.ErrorContains(t, err, kcpfake.Broken)
				failed++
			}
			require.LessOrEqual(t, failed, 1)
		}
		require.Nil(t, w.account)
		require.Empty(t, w.bindings)
		require.Empty(t, w.secrets)
		if failed == 0 {
			require.Equal(t, 5, n, "the control: every call has failed once")
			break
		}
	}
}

func TestBot_leavesADeletedWorkspaceAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.issue("a", time.Hour)
	w.converged(t)
	w.deleted, w.Did = true, nil
	w.account = nil
	w.converged(t)
	require.Equal(t, []string{"patch bots/" + name + "/status in org1"}, w.Did, "an inactive logical cluster takes no writes")
	require.Equal(t, []string{"a"}, w.ids(), "the token is good again after an undelete")
	w.remove()
	w.converged(t)
	require.NotNil(t, w.bot)
	w.workspace.Terminating = true
	w.converged(t)
	require.Nil(t, w.bot, "kcp removes the content of the Workspace")
}

func TestBot_endsWithoutItsWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.known, w.workspace = false, tenancy.Workspace{}
	w.converged(t)
	require.NotNil(t, w.bot, "the cache may be behind")
	w.exists = false
	w.converged(t)
	require.Nil(t, w.bot)
}
