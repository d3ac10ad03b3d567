package rights

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// roleWith is a role for one name of ConfigMaps for each of names, and with one rule whose three lists are of a length.
func roleWith(t *testing.T, name string, names, length int) (inJSON, inYAML, inProtobuf string) {
	t.Helper()
	list := func(n int) (l []string) {
		for i := range n {
			l = append(l, fmt.Sprintf("x%d", i))
		}
		return l
	}
	role := &rbacv1.ClusterRole{}
	role.Name = name
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if names > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get", "list", "watch"}, ResourceNames: list(names),
		})
	}
	if length > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: list(length), Resources: list(length), Verbs: list(length)})
	}
	raw, err := json.Marshal(role)
	require.NoError(t, err)
	text, err := yaml.Marshal(role)
	require.NoError(t, err)
	var encoded bytes.Buffer
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	require.True(t, ok)
	require.NoError(t, scheme.Codecs.EncoderForVersion(info.Serializer, rbacv1.SchemeGroupVersion).Encode(role, &encoded))
	return string(raw), string(text), encoded.String()
}

// The attack: a role of a few KiB, which kcp breaks down into 14 million before it asks its admission policy, and YAML that
// names a long text and repeats it. The hub answers at once and kcp gets neither.
func TestHostileAdmin_cannotFillTheMemoryOfKcp(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	const group = "/apis/rbac.authorization.k8s.io/v1"
	send := func(as, method, path, media, body string, code int) string {
		t.Helper()
		return string(s.hub.Do(t, call{
			As: as, Method: method, Path: "/clusters/" + s.cluster + path, Header: http.Header{"Content-Type": {media}}, Body: body,
		}, code).Raw)
	}
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	const inJSON, inYAML, inProtobuf = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"

	// Ordinary roles, large and small, in every encoding.
	large, largeYAML, largeProtobuf := roleWith(t, "large", 2000, 0)
	send("bob", http.MethodPost, group+"/clusterroles", inJSON, large, http.StatusCreated)
	send("bob", http.MethodPut, group+"/clusterroles/large", inYAML, largeYAML, http.StatusOK)
	send("bob", http.MethodPut, group+"/clusterroles/large", inProtobuf, largeProtobuf, http.StatusOK)
	send("bob", http.MethodPatch, group+"/clusterroles/large?fieldManager=m&force=true", apply, large, http.StatusOK)
	send("bob", http.MethodPatch, group+"/clusterroles/large?fieldManager=m&force=true", apply, largeYAML, http.StatusOK)
	send("bob", http.MethodPatch, group+"/clusterroles/large", "application/json-patch+json",
		`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, http.StatusOK)
	errOut, err := s.kubectl(t, "bob", toServiceAccount("large", "large"), "create -f -")
	require.NoError(t, err, errOut)
	largest, _, _ := roleWith(t, "largest", (tenancy.MaxRuleActions-1)/3, 0)
	send("bob", http.MethodPost, group+"/clusterroles?dryRun=All", inJSON, largest, http.StatusCreated)

	bomb, bombYAML, bombProtobuf := roleWith(t, "large", 0, 240)
	rules := strings.TrimSuffix(bomb[strings.Index(bomb, `"rules"`):], "}")
	for _, c := range []struct{ method, path, media, body string }{
		{http.MethodPost, "/clusterroles", inJSON, bomb},
		{http.MethodPost, "/clusterroles?dryRun=All", inJSON, bomb},
		{http.MethodPost, "/clusterroles", inYAML, bombYAML},
		{http.MethodPost, "/clusterroles", inProtobuf, bombProtobuf},
		{http.MethodPost, "/namespaces/default/roles", inJSON, bomb},
		{http.MethodPut, "/clusterroles/large", inJSON, bomb},
		{http.MethodPatch, "/clusterroles/large", merge, "{" + rules + "}"},
		{http.MethodPatch, "/clusterroles/large", "application/strategic-merge-patch+json", "{" + rules + "}"},
		{http.MethodPatch, "/clusterroles/large?fieldManager=m&force=true", apply, bomb},
		{http.MethodPatch, "/clusterroles/large?fieldManager=m&force=true", apply, bombYAML},
		{http.MethodPatch, "/clusterroles/large", "application/json-patch+json", `[{"op":"add","path":"/rules/-","value":{}}]`},
	} {
		require.Contains(t, send("bob", c.method, group+c.path, c.media, c.body, http.StatusUnprocessableEntity), `"field":"rules"`)
	}
	errOut, err = s.kubectl(t, "bob", bomb, "apply -f -")
	require.Error(t, err)
	require.Contains(t, errOut, fmt.Sprint("at most ", tenancy.MaxRuleActions, " actions"))

	// A member may not write roles, and everybody may ask for their own rights.
	const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	const review = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\n" +
		"spec:\n  resourceAttributes: {verb: get, resource: configmaps}\n"
	send("dave", http.MethodPost, reviews, inYAML, review, http.StatusCreated)
	repeated := review + "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 30_000) + "]\n"
	require.Contains(t, send("dave", http.MethodPost, reviews, inYAML, repeated, http.StatusUnprocessableEntity), "aliases")
	errOut, err = s.kubectl(t, "bob", "", "get clusterrole large")
	require.NoError(t, err, errOut)
}
