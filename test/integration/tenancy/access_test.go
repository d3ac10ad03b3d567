package tenancy

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// past is who had access at a moment, by user.
type past struct {
	holders map[string]map[string]any
	asOf    time.Time
}

// pastOf asks who had access to an Organization, or to a Workspace of it, at a moment.
func pastOf(hub *framework.Hub, org, ws string, at time.Time) (p past, err error) {
	query := "/access?at=" + url.QueryEscape(at.UTC().Format(time.RFC3339Nano))
	read := framework.InOrg("alice", http.MethodGet, org, query, nil)
	if ws != "" {
		read = framework.InWorkspace("alice", http.MethodGet, org, ws, query, nil)
	}
	a, err := hub.Try(read)
	if err != nil || a.Code != http.StatusOK {
		return p, fmt.Errorf("%d %s: %w", a.Code, a.Raw, err)
	}
	p.holders = map[string]map[string]any{}
	for _, item := range a.JSON["items"].([]any) {
		holder := item.(map[string]any)
		// An Organization lists the Workspaces in it, too.
		if in, _ := holder["workspace"].(string); in == ws {
			p.holders[holder["user"].(string)] = holder
		}
	}
	if text := a.Text("asOf"); text != "" {
		p.asOf, err = time.Parse(time.RFC3339, text)
	}
	return p, err
}

// A removal and an expiry end what the records of access say at their time, and leave what they say of the time before.
func TestAccess_saysWhoHadItBeforeARemovalAndAnExpiry(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, func(o *server.Options) {
		// A file of SQLite is for one replica. The test asks again and again.
		o.LeaderElect = false
		o.Records.Database, o.Limits.AuditReadsPerPerson = records.DefaultURL(o.DataDir), 0
	})
	framework.SignUp(t, hub, "bob", "carol")
	org := hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", org, "dev").Text("uuid")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	guest := framework.Adding("carol", "viewer")
	guest["expiresAt"] = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", guest), http.StatusCreated)

	// The leader records what it sees.
	var before time.Time
	framework.Eventually(t, framework.Long, func() error {
		before = time.Now()
		inOrg, err := pastOf(hub, org, "", before)
		if err != nil {
			return err
		}
		inWorkspace, err := pastOf(hub, org, ws, before)
		if err != nil {
			return err
		}
		return framework.Check(inOrg.holders["bob"]["role"] == "member" && inWorkspace.holders["carol"]["role"] == "viewer",
			"the organization has %v, and the workspace %v", inOrg.holders, inWorkspace.holders)
	})
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil), http.StatusNoContent)
	// The platform may give an end that is less than a minute ahead.
	end := time.Now().Add(20 * time.Second).Truncate(time.Second)
	p, carol := newPlatform(t, root), tenancy.MembershipName("carol", ws)
	patch := fmt.Sprintf(`{"spec":{"expiresAt":%q}}`, end.UTC().Format(time.RFC3339))
	_, err := p.Memberships(p.OrgPath(org)).Patch(t.Context(), carol, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	framework.Eventually(t, framework.Long, func() error {
		now, err := pastOf(hub, org, "", time.Now())
		return framework.Check(err == nil && now.holders["bob"] == nil && now.holders["alice"] != nil, "%v %v", err, now.holders)
	})
	// Somebody looked after the end: nothing comes that changes the answer.
	framework.Eventually(t, framework.Long, func() error {
		over, err := pastOf(hub, org, ws, end)
		return framework.Check(err == nil && !over.asOf.Before(end) && over.holders["carol"] == nil && over.holders["alice"] != nil,
			"%v %v as of %s", err, over.holders, over.asOf)
	})
	inOrg, err := pastOf(hub, org, "", before)
	require.NoError(t, err)
	require.Equal(t, "member", inOrg.holders["bob"]["role"])
	for _, at := range []time.Time{before, end.Add(-time.Second)} {
		inWorkspace, err := pastOf(hub, org, ws, at)
		require.NoError(t, err)
		require.Equal(t, "viewer", inWorkspace.holders["carol"]["role"], "%s", at)
	}
}
