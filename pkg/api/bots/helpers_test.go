package bots_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/bots"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	inDev = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev
	at    = inDev + "/serviceaccounts"
	// ci is a Bot of Dev, lab one of another Workspace, and next the UUID of whatever is made.
	ci   = "cccccccc-1111-4111-8111-000000000001"
	prod = "cccccccc-1111-4111-8111-000000000002"
	next = "cccccccc-1111-4111-8111-000000000003"
)

// world is kcp with the caches of the hub, and the controller of Bots.
type world struct {
	api.Store
	t       testing.TB
	metrics *prometheus.Registry
	counted *bots.Metrics
	held    map[string]*v1alpha1.Bot
	claim   tenancy.Workspace
	// becomesReady makes the Workspace Ready while a handler waits.
	becomesReady bool
	// failing, if not nil, is called before a step of the issue of a token, or before a write.
	failing func(step string) error
	// loses makes the answer to the next change of a Bot get lost: the caller tries again.
	loses bool
	// author, if not nil, reports whether the caller has lost their right in kcp.
	author func() bool
	// unsettled stops the controller.
	unsettled bool
	did       []string
	rechecked []string
	// pending are changes that the Organization has accepted, and no leader carries out.
	pending []v1alpha1.BotChange
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, metrics: prometheus.NewRegistry(), held: map[string]*v1alpha1.Bot{}, claim: apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "devcluster")}
	var err error
	w.counted, err = bots.NewMetrics(w.metrics)
	require.NoError(t, err)
	w.put(tenancy.NewBot(ci, apitest.Dev, "CI", v1alpha1.RoleMember, apitest.Admin, ""))
	w.put(tenancy.NewBot(prod, apitest.Prod, "Elsewhere", v1alpha1.RoleMember, apitest.Admin, ""))
	w.settle()
	return w
}

func (w *world) put(b *v1alpha1.Bot) {
	b.UID, b.Generation, b.ResourceVersion, b.CreationTimestamp = types.UID("uid-"+b.Name), 1, apitest.FirstVersion, apitest.Epoch()
	w.held[b.Name] = b
}

// settle is what the controller does.
func (w *world) settle() {
	for name, b := range w.held {
		b = b.DeepCopy()
		b.Status.ServiceAccountUID, b.Status.ServiceAccountGeneration = fmt.Sprintf("account-%d", b.Spec.Generation), b.Spec.Generation
		b.Status.ObservedGeneration, b.Status.Phase = b.Generation, v1alpha1.PhaseReady
		w.held[name] = b
	}
}

func (w *world) step(name string) error {
	w.did = append(w.did, name)
	if w.failing != nil {
		return w.failing(name)
	}
	return nil
}

func (w *world) Bot(orgCluster, workspace, name string) (*v1alpha1.Bot, bool) {
	b, ok := w.held[name]
	return b, ok && orgCluster == "acmecluster" && b.Spec.WorkspaceRef.Name == workspace
}

func (w *world) BotsAt(_, workspace string) (found []*v1alpha1.Bot) {
	for _, b := range w.held {
		if b.Spec.WorkspaceRef.Name == workspace {
			found = append(found, b)
		}
	}
	return found
}

func (w *world) Workspace(_, _ string) (tenancy.Workspace, bool) {
	ws := apitest.Workspace(apitest.Acme, apitest.Dev, "Development", "devcluster")
	if !w.becomesReady {
		ws.Status.Phase = v1alpha1.PhaseProgressing
	}
	return ws, true
}

func (w *world) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	require.Contains(w.t, refs, tenancy.WorkspaceRef(apitest.Dev))
	if cond() {
		return nil
	}
	if !w.unsettled {
		if w.settle(); cond() {
			return nil
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (w *world) Org(uuid string) (tenancy.Org, bool) {
	return tenancy.Org{Organization: apitest.Organization(uuid, "Acme", apitest.Admin), ClusterID: "acmecluster"}, true
}

func (w *world) GetBot(_ context.Context, orgCluster, name string) (*v1alpha1.Bot, error) {
	require.Equal(w.t, "acmecluster", orgCluster)
	return w.held[name], nil
}

// ChangeOrganization carries out what is decided at once.
func (w *world) ChangeOrganization(ctx context.Context, held *v1alpha1.Organization, match api.Match, edit func(context.Context, *v1alpha1.Organization) error) (*v1alpha1.Organization, error) {
	held = held.DeepCopy()
	held.Spec.BotChanges = w.pending
	patch, err := apitest.Patch(ctx, held, held.ResourceVersion, match, edit)
	if err != nil || patch == nil {
		return held, err
	}
	changed := apitest.MergePatched(w.t, held, patch)
	if len(changed.Spec.BotChanges) < len(w.pending) {
		w.pending = changed.Spec.BotChanges
		return changed, w.step("settle " + ci)
	}
	if err := w.step("decide"); err != nil {
		return nil, err
	}
	for _, c := range changed.Spec.BotChanges {
		b := w.held[c.Name]
		if b == nil {
			w.put(tenancy.ChangedBot(nil, c))
			continue
		}
		require.True(w.t, tenancy.BotChangeApplies(c, b))
		b = tenancy.ChangedBot(b, c)
		b.Generation++
		b.ResourceVersion = apitest.Next(b.ResourceVersion)
		w.held[c.Name] = b
	}
	if w.loses {
		w.loses = false
		return w.ChangeOrganization(ctx, held, nil, edit)
	}
	return held, nil
}

func (w *world) ChangeBot(ctx context.Context, held *v1alpha1.Bot, match api.Match, edit func(context.Context, *v1alpha1.Bot) error) (*v1alpha1.Bot, error) {
	if err := w.step("amend"); err != nil {
		return nil, err
	}
	b, ok := w.held[held.Name]
	if !ok {
		return nil, errs.New(errs.NotFound, "gone")
	}
	if held.Generation < b.Generation && match == nil {
		// As the store does: what a caller's version refuses is refused.
		if err := edit(ctx, held.DeepCopy()); err != nil {
			return nil, err
		}
	}
	patch, err := apitest.Patch(ctx, b, b.ResourceVersion, match, edit)
	if err != nil || patch == nil {
		return b, err
	}
	b = apitest.MergePatched(w.t, b, patch)
	b.Generation++
	w.held[held.Name] = b
	if w.loses {
		w.loses = false
		return w.ChangeBot(ctx, held, match, edit)
	}
	return b, nil
}

func (w *world) DeleteBot(_ context.Context, held *v1alpha1.Bot, match func(string) error) error {
	if err := w.step("delete"); err != nil {
		return err
	}
	if err := apitest.Judge(match, held.ResourceVersion); err != nil {
		return err
	}
	delete(w.held, held.Name)
	return nil
}

func (w *world) ChangeWorkspace(_ context.Context, _ string, ws tenancy.Workspace, _ api.Match, edit func(tenancy.Workspace, map[string]string) error) (tenancy.Workspace, error) {
	require.Equal(w.t, apitest.Dev, ws.UUID)
	if err := w.step("mark"); err != nil {
		return ws, err
	}
	return w.claim, edit(w.claim, map[string]string{})
}

func (w *world) Issue(_ context.Context, cluster string, b *v1alpha1.Bot, id string, life time.Duration) (token, secretUID string, err error) {
	require.Equal(w.t, "devcluster", cluster)
	held, ok := tenancy.FindToken(w.held[b.Name].Spec.Tokens, id)
	require.True(w.t, ok, "a token is listed before it is issued")
	require.Empty(w.t, held.SecretUID)
	require.Equal(w.t, max(life, tenancy.MinBotTokenTTL), max(held.ExpiresAt.Sub(held.CreatedAt.Time), tenancy.MinBotTokenTTL))
	if err := w.step("issue"); err != nil {
		return "", "", err
	}
	return "hush-" + id, "secret-of-" + id, nil
}

func (w *world) Discard(_ context.Context, _ string, _ *v1alpha1.Bot, id string) error {
	return w.step("discard " + id)
}

// views are the caches of the tenants, with the Workspace and the waits of the world.
type views struct {
	*apitest.World
	w *world
}

func (v views) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	return v.w.Workspace(org, workspace)
}

func (v views) Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error {
	return v.w.Await(ctx, refs, cond)
}

func (v views) Org(uuid string) (tenancy.Org, bool) { return v.w.Org(uuid) }

func (w *world) handler(tenants *apitest.World) http.Handler {
	deps := tenants.Deps(w.t, w, next)
	deps.Views, deps.CreateTimeout, deps.FollowTimeout = views{tenants, w}, 20*time.Millisecond, 20*time.Millisecond
	if w.author != nil {
		deps.Rights = tenants.RightsUntil(w.author)
	}
	h := &bots.Handler{
		Deps: deps, Bots: w, KCP: w, Tokens: w, Metrics: w.counted, MaxTokenTTL: 8784 * time.Hour, Issuers: []string{github},
		Recheck: func(b *v1alpha1.Bot) { w.rechecked = append(w.rechecked, b.Status.ServiceAccountUID) },
	}
	return apitest.Router(tenants, h.Mount)
}

func (w *world) do(c apitest.Call) apitest.Answer {
	if c.As == "" {
		c.As = apitest.WSAdmin
	}
	if c.Org == "" {
		c.Org, c.Workspace = apitest.Acme, apitest.Dev
	}
	return c.Do(w.handler(apitest.NewWorld()))
}

// give gives the Bot ci living tokens.
func (w *world) give(ids ...string) {
	b := w.held[ci].DeepCopy()
	for _, id := range ids {
		now := apitest.Epoch()
		b.Spec.Tokens = append(b.Spec.Tokens, v1alpha1.BotToken{ID: id, Name: "of " + id, CreatedAt: now, ExpiresAt: now, SecretUID: "s"})
		b.Spec.Tokens[len(b.Spec.Tokens)-1].ExpiresAt.Time = now.Add(time.Hour)
	}
	w.held[ci] = b
}

func (w *world) tokens() (ids []string) {
	for _, t := range w.held[ci].Spec.Tokens {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return ids
}
