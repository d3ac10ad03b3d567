package tenancy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// jobsIssuer is an identity provider of CI jobs, which nobody asks here.
const jobsIssuer = "https://ci.example.com"

// globalProvider publishes the example's provider for all Workspaces and returns the UUID of its entry.
func globalProvider(t testing.TB, p platform) string {
	t.Helper()
	export := framework.Provider(t, kcp, p.Root+":providers:widgets")
	kcp.Applies(t, p.Root+":providers", framework.ExampleCatalog(t, "entry.yaml", export.Path))
	return tenancy.CatalogEntryName("", "widgets")
}

// offered waits until the hubs offer the provider in the Workspace.
func (l grantLane) offered(t testing.TB) {
	t.Helper()
	for _, hub := range l.hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(framework.InWorkspace(l.owner, http.MethodGet, l.org, l.workspace, "/providers/"+l.provider, nil))
			return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
		})
	}
}

// givenElsewhere adds the entries of the Organization and the APIs that are bound in the Workspace.
func (l grantLane) givenElsewhere(t testing.TB, all given) error {
	var entries v1alpha1.CatalogEntryList
	if err := l.p.CatalogEntries(l.p.OrgPath(l.org)).GetClient().Get().Resource("catalogentries").Do(t.Context()).Into(&entries); err != nil {
		return err
	}
	for _, e := range entries.Items {
		all["entry "+e.Name] = e.Spec.Slug
	}
	var bindings kcpapisv1alpha2.APIBindingList
	if err := l.p.APIBindings(l.cluster).GetClient().Get().Resource("apibindings").Do(t.Context()).Into(&bindings); err != nil {
		return err
	}
	for _, b := range bindings.Items {
		if b.Spec.Reference.Export != nil && b.DeletionTimestamp.IsZero() {
			all["binding "+string(b.UID)] = b.Spec.Reference.Export.Name
		}
	}
	return nil
}

// moreGrants are requests of eve that give rights by way of a rule, a link, a group or an API.
func (l grantLane) moreGrants(round int) []call {
	bot := "/serviceaccounts/" + l.bot
	entry := map[string]any{
		"slug": fmt.Sprint("late-", round), "displayName": "late", "apiExport": map[string]string{"path": l.path, "name": "late"},
	}
	publish := framework.InOrg(l.eve, http.MethodPost, l.org, "/catalog", entry)
	publish.Header = http.Header{"Prefer": {"respond-async"}}
	calls := []call{
		publish,
		framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, bot+"/tokens/"+l.token+"/rotate", map[string]any{"gracePeriodSeconds": 3600}),
		framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, bot+"/trust", map[string]any{
			"issuer": jobsIssuer, "claims": map[string]string{"sub": fmt.Sprint("job ", round)},
		}),
		framework.InOrg(l.eve, http.MethodPost, l.org, "/invitations", map[string]string{"role": "admin"}),
		framework.InOrg(l.eve, http.MethodPost, l.org, "/groups", map[string]string{"group": fmt.Sprint("late-", round), "role": "admin"}),
	}
	if round%5 == 0 {
		// A provider that is enabled is disabled again before the next round, which takes kcp a moment.
		body := `{"acceptClaims":[{"group":"","resource":"configmaps"}],"rejectClaims":[{"group":"","resource":"secrets"}]}`
		calls = append(calls, framework.InWorkspace(l.eve, http.MethodPost, l.org, l.workspace, "/providers/"+l.provider+"/enable", body))
	}
	return calls
}

// undoMore takes what moreGrants gave.
func (l grantLane) undoMore(now given) (undo []error) {
	for what, by := range now {
		kind, id, _ := strings.Cut(what, " ")
		switch {
		case kind == "trust" && by == l.bot:
			undo = append(undo, l.do(framework.InWorkspace(l.owner, http.MethodDelete, l.org, l.workspace, "/serviceaccounts/"+by+"/trust/"+id, nil), 204, 404))
		case kind == "group":
			undo = append(undo, l.do(framework.InOrg(l.owner, http.MethodDelete, l.org, "/groups/"+id, nil), 204, 404))
		case kind == "entry":
			undo = append(undo, l.do(framework.InOrg(l.owner, http.MethodDelete, l.org, "/catalog/"+id, nil), 204, 404))
		case kind == "binding" && by == "widgets.example.org":
			disable := framework.InWorkspace(l.owner, http.MethodDelete, l.org, l.workspace, "/providers/"+l.provider+"/enable?confirm=true", nil)
			undo = append(undo, l.do(disable, 200, 404))
		}
	}
	return undo
}

// opensNothing waits until the hubs show no invitation of eve as open, and ends those.
func (l grantLane) opensNothing() error {
	var void []string
	for _, hub := range l.hubs {
		if err := framework.Wait(framework.Long, func() error {
			a, err := hub.Try(framework.InOrg(l.owner, http.MethodGet, l.org, "/invitations?limit=500", nil))
			if err != nil || a.Code != http.StatusOK {
				return fmt.Errorf("the invitations: %w, %d %s", err, a.Code, a.Raw)
			}
			void = nil
			items, _ := a.JSON["items"].([]any)
			for _, item := range items {
				switch i, _ := item.(map[string]any); i["state"] {
				case rest.InvitationOpen:
					return fmt.Errorf("an invitation of eve is open: %v", i)
				case rest.InvitationVoid:
					void = append(void, fmt.Sprint(i["id"]))
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, id := range void {
		if err := l.do(framework.InOrg(l.owner, http.MethodDelete, l.org, "/invitations/"+id, nil), 204, 404); err != nil {
			return err
		}
	}
	return nil
}
