package server

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/leader"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/restore/external"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// rootID is the logical cluster of the root workspace of the tree.
const rootID = "root-id"

// before returns the configuration of a hub before an external kcp.
func before(t *testing.T, s *kcpfake.Server) Config {
	t.Helper()
	return verifying(t, func(o *Options) {
		o.KCPKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		config := clientcmdapi.Config{
			CurrentContext: "kcp",
			Contexts:       map[string]*clientcmdapi.Context{"kcp": {Cluster: "kcp", AuthInfo: "admin"}},
			Clusters:       map[string]*clientcmdapi.Cluster{"kcp": {Server: s.URL(), CertificateAuthorityData: s.Config().CAData}},
			AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "of-the-admin"}},
		}
		require.NoError(t, clientcmd.WriteToFile(config, o.KCPKubeconfig))
	})
}

// starting is a replica that has looked into its data folder, and knows the tree.
func starting(t *testing.T, s *kcpfake.Server) *assembly {
	t.Helper()
	h, err := opened(t, before(t, s))
	require.NoError(t, err)
	return &assembly{hub: h, clients: s.Clients(), clusters: bootstrap.Clusters{Root: rootID}}
}

func TestFindOrder_isInRestoreModeOnEveryReplica(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	orders := external.New(s.Clients(), rootID)
	plan := restore.Plan{Steps: []restore.Step{{Kind: restore.RemoveMember, Object: "bob"}}}
	a := starting(t, s)
	require.NoError(t, a.findOrder(t.Context()))
	require.False(t, a.hub.restored.replaying())
	require.False(t, a.hub.purges.held.Load())

	// The data of an embedded kcp was restored, and is served by this kcp now.
	promoted := starting(t, s)
	require.NoError(t, restore.Hold(promoted.hub.config.DataDir))
	require.NoError(t, promoted.findOrder(t.Context()))
	require.True(t, promoted.hub.purges.held.Load())
	require.NoError(t, promoted.hub.purges.free(t.Context()))
	require.False(t, promoted.hub.held(external.State{}))

	id, err := orders.Begin(t.Context())
	require.NoError(t, err)
	replicas := []*assembly{starting(t, s), starting(t, s)}
	found := make(chan error, len(replicas))
	for _, a := range replicas {
		go func() { found <- a.findOrder(t.Context()) }()
		require.Eventually(t, a.hub.restored.replaying, time.Minute, time.Millisecond)
		require.Contains(t, a.hub.restored.says(), "has not written all of its order")
	}
	require.Empty(t, found)
	require.NoError(t, orders.Complete(t.Context(), id, plan))
	for range replicas {
		require.NoError(t, <-found)
	}
	for _, a := range replicas {
		require.Equal(t, "the hub is in restore mode: 1 of 1 endings are left", a.hub.restored.says())
		require.Equal(t, plan, a.hub.restored.plan)
		require.True(t, a.hub.purges.held.Load())
	}

	// One ends everything, and the other one follows.
	first, second := replicas[0].hub.restored, replicas[1].hub.restored
	applied, err := second.at.Applied(t.Context())
	require.NoError(t, err)
	require.False(t, applied)
	report, err := first.at.Report(t.Context())
	require.NoError(t, err)
	report.Done = plan.Steps
	waits := make(chan error, 1)
	go func() { waits <- second.awaitApplied(t.Context(), nil) }()
	require.NoError(t, first.at.Save(t.Context(), report, restore.PhaseApplied))
	require.NoError(t, <-waits)
	read, err := second.at.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, report, read)
	late := starting(t, s)
	require.NoError(t, late.findOrder(t.Context()))
	require.True(t, late.hub.restored.replaying())
	require.NoError(t, late.hub.replay(t.Context(), nil), "nothing is left to end")

	// Purges are held on all until they are released on one.
	require.NoError(t, first.at.Save(t.Context(), report, restore.PhaseHeld))
	late = starting(t, s)
	require.NoError(t, late.findOrder(t.Context()))
	require.False(t, late.hub.restored.replaying())
	require.True(t, late.hub.purges.held.Load())
	stops := make(chan error, 1)
	go func() { stops <- late.hub.watchOrders(t.Context()) }()
	serving(t, replicas[0].hub.config, replicas[0].hub.purges.release)
	require.NoError(t, Release(t.Context(), replicas[0].hub.config, io.Discard))
	require.Eventually(t, func() bool { return !late.hub.purges.held.Load() }, time.Minute, time.Millisecond)
	require.Empty(t, stops)
	read, err = second.at.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, restore.Report{Plan: plan}, read, "a replica that is late")

	// A restore behind a hub that serves stops it.
	_, err = orders.Begin(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, <-stops, errOrdered)
	require.True(t, late.hub.purges.held.Load())
	require.ErrorIs(t, second.awaitApplied(t.Context(), nil), external.ErrReplaced)
}

// restoredKCP is a kcp that was restored: it has what hubs wrote before its backup.
func restoredKCP(t *testing.T, heads []audit.Head, renewed time.Time) *kcpfake.Server {
	t.Helper()
	s := kcpfake.New(t)
	text, _, err := audit.RecordHeads("", renewed, heads)
	require.NoError(t, err)
	root := &kcptenancyv1alpha1.Workspace{Spec: kcptenancyv1alpha1.WorkspaceSpec{Cluster: rootID}}
	root.Name, root.Annotations = "kedge", map[string]string{v1alpha1.AuditHeadsAnnotation: text}
	s.Put("root", root)
	s.Put(rootID, leaseOf(renewed))
	return s
}

func leaseOf(renewed time.Time) *coordinationv1.Lease {
	holder, at := "replica-1", metav1.NewMicroTime(renewed)
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}}
	lease.Name, lease.Namespace = leader.LeaseName, leader.LeaseNamespace
	return lease
}

func TestRestoreExternal_ordersWhatEnded(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", removal)
	now := time.Now()
	s := restoredKCP(t, []audit.Head{head}, now)
	c, out := before(t, s), &strings.Builder{}
	require.NoError(t, RestoreExternal(t.Context(), c, RestoreOptions{BackupAt: now, Replay: []string{file}}, out))
	require.Contains(t, out.String(), "its audit log ends at event 2")
	require.Contains(t, out.String(), "ends 1 times what ended after")
	a := starting(t, s)
	require.NoError(t, a.findOrder(t.Context()))
	require.Len(t, a.hub.restored.plan.Steps, 1)
	require.ErrorContains(t, Release(t.Context(), c, io.Discard), "repeat this when they serve")

	out.Reset()
	require.NoError(t, PrintReport(t.Context(), c, out))
	var report restore.Report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &report))
	require.Equal(t, a.hub.restored.plan.Steps[0].Object, report.Steps[0].Object)
	require.Empty(t, report.Done)
}

// What is refused leaves nothing in kcp, so that hubs serve as before.
func TestRestoreExternal_ordersNothingThatIsNotCertain(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", removal)
	now := time.Now()
	heads := []audit.Head{head}
	for name, tt := range map[string]struct {
		kcp  *kcpfake.Server
		o    RestoreOptions
		says string
	}{
		"no file":  {restoredKCP(t, heads, now), RestoreOptions{BackupAt: now}, "--accept-lost-history"},
		"no chain": {restoredKCP(t, nil, now), RestoreOptions{BackupAt: now, Replay: []string{file}}, "names no chain of rights"},
		"a hub that has worked": {
			restoredKCP(t, heads, now), RestoreOptions{BackupAt: now.Add(-time.Hour), Replay: []string{file}},
			"a hub has worked with the restored kcp",
		},
		"a time that is ahead":    {restoredKCP(t, heads, now), RestoreOptions{BackupAt: now.Add(time.Hour)}, "--backup-at: this time is ahead"},
		"a kcp without a hub":     {kcpfake.New(t), RestoreOptions{BackupAt: now, Replay: []string{file}}, "has no data of a hub"},
		"a file that is not here": {restoredKCP(t, heads, now), RestoreOptions{BackupAt: now, Replay: []string{file + "x"}}, "--replay:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, RestoreExternal(t.Context(), before(t, tt.kcp), tt.o, io.Discard), tt.says)
			require.Empty(t, tt.kcp.List(rootID, "", "secrets"))
		})
	}
	embedded := verifying(t)
	require.ErrorContains(t, RestoreExternal(t.Context(), embedded, RestoreOptions{BackupAt: now}, io.Discard), "--kcp-kubeconfig")
	require.ErrorIs(t, PrintReport(t.Context(), embedded, io.Discard), os.ErrNotExist)
}

func TestRestoreExternal_refusesWhileAHubLeads(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", removal)
	s := restoredKCP(t, []audit.Head{head}, time.Now())
	// It renews the Lease whenever the command has read it.
	s.FailAfter(func(in kcpfake.Request) error {
		if strings.Contains(in.String(), "leases") {
			s.Put(rootID, leaseOf(time.Now()))
		}
		return nil
	})
	err := RestoreExternal(t.Context(), before(t, s), RestoreOptions{BackupAt: time.Now(), Replay: []string{file}}, io.Discard)
	require.ErrorContains(t, err, "replica-1 holds it; stop all replicas")
	require.Empty(t, s.List(rootID, "", "secrets"))
}

// The replicas have begun with an order when its command is repeated, and one of them takes the Lease meanwhile.
func TestRestoreExternal_refusedASecondTimeKeepsTheFirstOrder(t *testing.T) {
	t.Parallel()
	file, head := chainOf(t, "add member", removal)
	s := restoredKCP(t, []audit.Head{head}, time.Now())
	c := before(t, s)
	restoreIt := func() error {
		return RestoreExternal(t.Context(), c, RestoreOptions{BackupAt: time.Now(), Replay: []string{file}}, io.Discard)
	}
	require.NoError(t, restoreIt())
	a := starting(t, s)
	require.NoError(t, a.findOrder(t.Context()))
	at := a.hub.restored.at
	s.FailAfter(func(in kcpfake.Request) error {
		if in.Resource == "secrets" && in.Verb == "update" {
			s.Put(rootID, leaseOf(time.Now()))
			applied, err := at.Applied(t.Context())
			require.False(t, applied)
			require.ErrorIs(t, err, external.ErrReplaced, "it waits for the new order")
			s.FailAfter(nil)
		}
		return nil
	})
	require.ErrorContains(t, restoreIt(), "replica-1 holds it; stop all replicas")
	applied, err := at.Applied(t.Context())
	require.NoError(t, err)
	require.False(t, applied, "nothing is ended yet")
	for _, phase := range []restore.Phase{restore.PhaseOrdered, restore.PhaseHeld} {
		again := starting(t, s)
		require.NoError(t, again.findOrder(t.Context()))
		require.Equal(t, phase == restore.PhaseOrdered, again.hub.restored.replaying())
		require.True(t, again.hub.purges.held.Load())
		require.NoError(t, at.Save(t.Context(), restore.Report{}, restore.PhaseHeld))
	}

	// A kcp that is restored again, from before the order, has none.
	stored := s.Clients().Secrets(rootID, metav1.NamespaceDefault)
	for _, o := range s.List(rootID, "", "secrets") {
		require.NoError(t, stored.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
	}
	_, err = at.Applied(t.Context())
	require.ErrorIs(t, err, external.ErrReplaced)
}
