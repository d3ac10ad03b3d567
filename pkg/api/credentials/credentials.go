package credentials

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// execVersion is the API version of ExecCredential.
const execVersion = "client.authentication.k8s.io/v1"

// lifetime is the time after which kubectl requests the token again, and learns if the right
// to it was revoked.
const lifetime = 10 * time.Minute

// Handler serves kubeconfigs and /api/credentials.
type Handler struct {
	// WorkspaceScope is the middleware of httpmw for endpoints of a Workspace.
	WorkspaceScope func(http.Handler) http.Handler
	// Enter is the method of tenancy.Gate.
	Enter func(user, cluster string) (tenancy.Entry, error)
	Tree  tenancy.Tree
	// ExternalURL is the URL of the hub, without a trailing slash. CA is the PEM bundle that
	// clients trust.
	ExternalURL string
	CA          []byte
	Clock       clock.PassiveClock
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.WorkspaceScope).Get("/orgs/{org}/workspaces/{ws}/kubeconfig", httpapi.Handle(h.kubeconfig))
	r.Post("/credentials", httpapi.Handle(h.issue))
}

func (h *Handler) kubeconfig(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	entry, err := h.Enter(scope.User, h.Tree.Workspace(scope.Org.UUID(), scope.Workspace.UUID))
	if err != nil {
		return err
	}
	// kubectl merges kubeconfigs and keeps the first entry of each name, so each Workspace
	// has its own names.
	context := "kedge-" + entry.Workspace.UUID
	server := h.ExternalURL + "/clusters/" + entry.Workspace.ClusterID
	config := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": context,
		"clusters": []any{map[string]any{"name": context, "cluster": map[string]any{
			"server":                     server,
			"certificate-authority-data": base64.StdEncoding.EncodeToString(h.CA),
		}}},
		"contexts": []any{map[string]any{"name": context, "context": map[string]any{
			"cluster": context, "user": context, "namespace": tenancy.DefaultNamespace,
		}}},
		"users": []any{map[string]any{"name": context, "user": map[string]any{"exec": map[string]any{
			"apiVersion": execVersion, "command": "kedge", "args": []string{"credential", "--server", h.ExternalURL},
			"provideClusterInfo": true, "interactiveMode": "Never",
			"installHint": "kedge is the command line of this hub; put it on your PATH and run kedge login.",
		}}}},
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, err = w.Write(raw)
	return err
}

// execCredential is the ExecCredential object, in requests and answers.
type execCredential struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Spec       execSpec `json:"spec"`
	// Status of a request is ignored; the answer replaces it.
	Status map[string]any `json:"status,omitempty"`
}

type execSpec struct {
	Cluster     *execCluster `json:"cluster,omitempty"`
	Interactive bool         `json:"interactive"`
}

type execCluster struct {
	Server                string `json:"server"`
	TLSServerName         string `json:"tls-server-name,omitempty"`
	InsecureSkipTLSVerify bool   `json:"insecure-skip-tls-verify,omitempty"`
	// CertificateAuthorityData is returned unchanged. The hub does not use it.
	CertificateAuthorityData string `json:"certificate-authority-data,omitempty"`
	ProxyURL                 string `json:"proxy-url,omitempty"`
	DisableCompression       bool   `json:"disable-compression,omitempty"`
	Config                   any    `json:"config,omitempty"`
}

func (h *Handler) issue(w http.ResponseWriter, r *http.Request) error {
	var in execCredential
	if err := httpapi.Read(r, &in); err != nil {
		return err
	}
	switch {
	case in.Kind != "ExecCredential":
		return errs.InvalidField("kind", "must be ExecCredential")
	case in.APIVersion != execVersion:
		return errs.InvalidField("apiVersion", "must be "+execVersion)
	case in.Spec.Cluster == nil || in.Spec.Cluster.Server == "":
		return errs.InvalidField("spec.cluster.server", "is missing; set provideClusterInfo: true in the kubeconfig")
	}
	cluster, ok := strings.CutPrefix(in.Spec.Cluster.Server, h.ExternalURL+"/clusters/")
	if !ok {
		return errs.InvalidField("spec.cluster.server", "is not a workspace of this hub, which are at "+h.ExternalURL+"/clusters/{id}")
	}
	if _, err := h.Enter(httpmw.CallerOf(r).User.Name, strings.TrimSuffix(cluster, "/")); err != nil {
		return err
	}
	token, err := httpmw.BearerToken(r)
	if err != nil {
		return err
	}
	in.Status = map[string]any{"token": token, "expirationTimestamp": metav1.NewTime(h.Clock.Now().Add(lifetime))}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.Write(w, http.StatusOK, in)
}
