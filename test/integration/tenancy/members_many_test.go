package tenancy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// manyRows is twice the number of Memberships that a person can be given.
const manyRows = 2000

// A person who was put into very many places, all with the longest names, works on.
func TestIndex_ofTwoThousandRowsWorks(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	p := newPlatform(t, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "platform")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob", "erin")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	index, err := p.Indexes(p.UsersPath()).Get(t.Context(), "bob", metav1.GetOptions{})
	require.NoError(t, err)
	mine := index.Spec.Entries
	require.Len(t, mine, 1)

	// The controllers leave these alone: there are no Workspaces behind them.
	ignored := map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
	work := make(chan int)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for i := range work {
				m := tenancy.NewWorkspaceMembership("bob", fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), v1alpha1.RoleMember, nil, false)
				m.Annotations = ignored
				if _, err := p.Memberships(p.OrgPath(org)).Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	name := strings.Repeat("<", tenancy.MaxDisplayName)
	entries := []v1alpha1.MembershipIndexEntry{}
	for i := range manyRows {
		row := mine[0]
		row.WorkspaceUUID, row.ClusterID = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), strings.Repeat("c", 16)
		row.OrgDisplayName, row.WorkspaceDisplayName = tenancy.IndexedName(name, manyRows), tenancy.IndexedName(name, manyRows)
		entries = append(entries, row)
		work <- i
	}
	close(work)
	running.Wait()
	write := func(operation string, spec map[string]any) {
		t.Helper()
		changes := map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.OperationAnnotation: operation}}}
		if spec != nil {
			changes["spec"] = spec
		}
		patch, err := json.Marshal(changes)
		require.NoError(t, err)
		t.Logf("an index of %d bytes", len(patch))
		_, err = p.Indexes(p.UsersPath()).Patch(t.Context(), "bob", types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	write(v1alpha1.OperationIgnore, map[string]any{"entries": append(entries, mine...)})

	rows := func(want int) {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/api/users/me/memberships"})
			items, _ := a.JSON["items"].([]any)
			if err == nil && (a.Code != http.StatusOK || len(items) != want) {
				err = fmt.Errorf("%d rows: %d", len(items), a.Code)
			}
			return err
		})
	}
	rows(manyRows + 1)
	hub.Do(t, call{As: "bob", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	hub.Do(t, framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil), http.StatusOK)
	hub.Enters(t, "bob", cluster)
	credential := strings.ReplaceAll(framework.ExecCredential(cluster), "{hub}", hub.URL)
	hub.Do(t, call{As: "bob", Method: http.MethodPost, Path: "/api/credentials", Body: credential}, http.StatusOK)
	hub.Do(t, framework.InWorkspace("erin", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK)
	hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/bob", nil), http.StatusNoContent)
	hub.Do(t, framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
	// The controller writes the index again.
	write(v1alpha1.OperationReconcile, nil)
	rows(0)
}
