package framework

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/server"
)

// ExecCredential is the request body of the kubectl exec plugin for a cluster. The caller
// replaces {hub} with the hub's URL.
func ExecCredential(cluster string) string {
	return `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,"cluster":{"server":"{hub}/clusters/` + cluster + `"}}}`
}

// WithAdmin makes heidi a platform admin.
func WithAdmin(o *server.Options) { o.AdminUsers = []string{"heidi"} }

// Registering is the call by which heidi sets the registration of a User.
func Registering(user, state string) Call {
	return Call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/users/" + user, Body: map[string]string{"registration": state}}
}

// SignUp sends the first request of each person.
func SignUp(t testing.TB, hub *Hub, names ...string) {
	t.Helper()
	for _, name := range names {
		hub.Do(t, Call{As: name, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	}
}

// InOrg is a call to a path below an Org.
func InOrg(as, method, org, below string, body any) Call {
	return Call{As: as, Method: method, Path: "/api/orgs/" + org + below, Org: org, Body: body}
}

// InWorkspace is a call to a path below a Workspace.
func InWorkspace(as, method, org, ws, below string, body any) Call {
	return Call{As: as, Method: method, Path: "/api/orgs/" + org + "/workspaces/" + ws + below, Org: org, Workspace: ws, Body: body}
}

// Adding is the body that adds a member.
func Adding(user, role string) map[string]any {
	return map[string]any{"userRef": map[string]string{"name": user}, "role": role}
}

// WithRole is the body that changes a role.
func WithRole(r string) map[string]string { return map[string]string{"role": r} }

// RolesListed reads the roles from a list of members, by name.
func RolesListed(a Answer) map[string]string {
	out := map[string]string{}
	items, _ := a.JSON["items"].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		out[fmt.Sprint(m["user"])] = fmt.Sprint(m["role"])
	}
	return out
}

// StatusOf decodes the Status of a refusal.
func StatusOf(t testing.TB, a Answer) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal(a.Raw, &s))
	require.Equal(t, "Status", s.Kind, "%s", a.Raw)
	require.EqualValues(t, a.Code, s.Code)
	return s
}

// CausesOf lists the types of the causes of a refusal.
func CausesOf(t testing.TB, a Answer) []string {
	t.Helper()
	var out []string
	if d := StatusOf(t, a).Details; d != nil {
		for _, c := range d.Causes {
			out = append(out, string(c.Type))
		}
	}
	return out
}

// AtOnce sends all calls at the same moment and spreads them over the hubs.
func AtOnce(hubs []*Hub, calls []Call) ([]Answer, error) {
	answers, failures := make([]Answer, len(calls)), make([]error, len(calls))
	var all, ready sync.WaitGroup
	start := make(chan struct{})
	ready.Add(len(calls))
	for i, c := range calls {
		all.Go(func() {
			ready.Done()
			<-start
			answers[i], failures[i] = hubs[i%len(hubs)].Try(c)
		})
	}
	ready.Wait()
	close(start)
	all.Wait()
	return answers, errors.Join(failures...)
}

// Impersonating returns the headers that impersonate a user.
func Impersonating(user string, groups ...string) http.Header {
	return http.Header{"Impersonate-User": {user}, "Impersonate-Group": groups}
}
