package rights

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/test/framework"
)

// listing is the parsed output of kubectl auth can-i --list.
type listing struct {
	// resources has the rules on whole kinds: "*" stands for all kinds of the core group,
	// "*.apps" for all kinds of that group. named has the rules on single objects.
	resources, named map[string][]string
	urls             map[string][]string
}

func canIList(t testing.TB, hub *framework.Hub, as, cluster string) listing {
	t.Helper()
	out, errOut, err := hub.Kubectl(t, as, cluster, "auth", "can-i", "--list")
	require.NoError(t, err, errOut)
	return parseListing(t, out)
}

// parseListing finds the columns by their headings, because their widths vary.
func parseListing(t testing.TB, table string) listing {
	t.Helper()
	l := listing{map[string][]string{}, map[string][]string{}, map[string][]string{}}
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	urls, names, verbs := strings.Index(lines[0], "Non-Resource URLs"), strings.Index(lines[0], "Resource Names"), strings.Index(lines[0], "Verbs")
	require.Positive(t, min(urls, names, verbs), table)
	list := func(cell string) []string { return strings.Fields(strings.Trim(strings.TrimSpace(cell), "[]")) }
	for _, line := range lines[1:] {
		resource := strings.TrimSpace(line[:urls])
		into := l.resources
		if len(list(line[names:verbs])) > 0 {
			into = l.named
		}
		if resource != "" {
			into[resource] = append(into[resource], list(line[verbs:])...)
		}
		for _, url := range list(line[urls:names]) {
			l.urls[url] = append(l.urls[url], list(line[verbs:])...)
		}
	}
	return l
}

// can evaluates the listing as RBAC evaluates rules, with wildcards.
func (l listing) can(verb, resource string) bool {
	r := schema.ParseGroupResource(resource)
	for _, row := range []string{resource, schema.GroupResource{Group: r.Group, Resource: "*"}.String(), "*.*"} {
		if slices.Contains(l.resources[row], verb) || slices.Contains(l.resources[row], "*") {
			return true
		}
	}
	return false
}

// granted returns all verbs of the listing, on any resource or URL.
func (l listing) granted() []string {
	var all []string
	for _, rows := range []map[string][]string{l.resources, l.named, l.urls} {
		for _, verbs := range rows {
			all = append(all, verbs...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// forbidden reports whether kubectl was refused. Any other failure of kubectl fails the
// test.
func forbidden(t testing.TB, errOut string, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	require.Contains(t, strings.ToLower(errOut), "forbidden", "it failed, and not for want of a right")
	return true
}

// hasInKCP reports whether RBAC in kcp allows a request, independently of the hub's own
// checks.
func hasInKCP(t testing.TB, as, cluster, verb, group, resource string) bool {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{
			"user": as, "groups": []string{"system:authenticated", "dev"},
			"resourceAttributes": map[string]string{"verb": verb, "group": group, "resource": resource},
		},
	})
	require.NoError(t, err)
	clients := kcp.Clients(t)
	defer clients.Close()
	client, base := clients.HTTP()
	response, err := client.Post(base+"/clusters/"+cluster+"/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", strings.NewReader(string(body)))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, response.StatusCode, "%s", raw)
	var review struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	require.NoError(t, json.Unmarshal(raw, &review))
	return review.Status.Allowed
}
