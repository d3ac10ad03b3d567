package kubeconfig

import (
	"net/http"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// MediaType is the content type of the answer.
const MediaType = "application/yaml"

// Views are the caches that name the Workspaces of a caller.
type Views interface {
	Workspaces(org string) []tenancy.Workspace
	Index(user string) []v1alpha1.MembershipIndexEntry
}

// Name returns the name of the context of a Workspace. kubectl merges kubeconfigs and keeps the first entry of each
// name, so no other Workspace that the caller can enter has the same one. Others do not count: the name would tell
// whether they exist.
func Name(v Views, scope *tenancy.Scope, ws tenancy.Workspace) string {
	name := rest.ContextName(scope.Org.Spec.DisplayName, ws.DisplayName)
	entries := v.Index(scope.User)
	for _, other := range v.Workspaces(scope.Org.UUID()) {
		if other.UUID == ws.UUID || tenancy.WorkspaceRole(entries, scope.Org.UUID(), other.UUID, scope.Org.Spec.DefaultAccess) == "" {
			continue
		}
		if rest.ContextName(scope.Org.Spec.DisplayName, other.DisplayName) == name {
			return rest.DistinctContextName(name, ws.UUID)
		}
	}
	for _, e := range entries {
		if e.WorkspaceUUID != "" && e.WorkspaceUUID != ws.UUID && rest.ContextName(e.OrgDisplayName, e.WorkspaceDisplayName) == name {
			return rest.DistinctContextName(name, ws.UUID)
		}
	}
	return name
}

// Write answers with the kubeconfig of a Workspace. externalURL is the URL of the hub, without
// a trailing slash, ca the PEM bundle that clients trust, and context the name of all entries.
func Write(w http.ResponseWriter, code int, externalURL string, ca []byte, context string, ws tenancy.Workspace, auth clientcmdv1.AuthInfo) error {
	raw, err := yaml.Marshal(clientcmdv1.Config{
		APIVersion: clientcmdv1.SchemeGroupVersion.Version, Kind: "Config", CurrentContext: context,
		Clusters: []clientcmdv1.NamedCluster{{Name: context, Cluster: clientcmdv1.Cluster{
			Server: externalURL + "/clusters/" + ws.ClusterID, CertificateAuthorityData: ca,
		}}},
		Contexts: []clientcmdv1.NamedContext{{Name: context, Context: clientcmdv1.Context{
			Cluster: context, AuthInfo: context, Namespace: tenancy.DefaultNamespace,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: context, AuthInfo: auth}},
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, err = w.Write(raw)
	return err
}
