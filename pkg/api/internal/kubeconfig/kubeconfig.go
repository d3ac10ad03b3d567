package kubeconfig

import (
	"net/http"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// MediaType is the content type of the answer.
const MediaType = "application/yaml"

// Write answers with the kubeconfig of a Workspace. externalURL is the URL of the hub, without
// a trailing slash, and ca the PEM bundle that clients trust.
func Write(w http.ResponseWriter, code int, externalURL string, ca []byte, ws tenancy.Workspace, auth clientcmdv1.AuthInfo) error {
	// kubectl merges kubeconfigs and keeps the first entry of each name, so each Workspace
	// has its own names.
	context := "kedge-" + ws.UUID
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
