package credentials

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/kubeconfig"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const execVersion = clientauthenticationv1.GroupName + "/v1"

// lifetime is the time after which kubectl requests the token again, unless the token expires
// earlier, and learns if the right to it was revoked.
const lifetime = 10 * time.Minute

// Handler serves kubeconfigs and /api/credentials.
type Handler struct {
	api.Deps
	// Enter is the method of tenancy.Gate.
	Enter func(user, cluster string) (tenancy.Entry, error)
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.Scopes.Workspace).Get("/orgs/{org}/workspaces/{ws}/kubeconfig", httpapi.Handle(h.kubeconfig))
	r.Post("/credentials", httpapi.Handle(h.issue))
}

func (h *Handler) kubeconfig(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	entry, err := h.Enter(scope.User, h.Tree.Workspace(scope.Org.UUID(), scope.Workspace.UUID))
	if err != nil {
		return err
	}
	name := kubeconfig.Name(h.Views, scope, entry.Workspace)
	if httpmw.CallerOf(r).Bot != nil {
		// A bot has its token and cannot log in: kubectl --token.
		return kubeconfig.Write(w, http.StatusOK, h.ExternalURL, h.CA(), name, entry.Workspace, clientcmdv1.AuthInfo{})
	}
	return kubeconfig.Write(w, http.StatusOK, h.ExternalURL, h.CA(), name, entry.Workspace, clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
		APIVersion: execVersion, Command: "kedge", Args: []string{"credential", "--server", h.ExternalURL},
		ProvideClusterInfo: true, InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
		InstallHint: "kedge is the command line of this hub; put it on your PATH and run kedge login.",
	}})
}

func (h *Handler) issue(w http.ResponseWriter, r *http.Request) error {
	var in clientauthenticationv1.ExecCredential
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
	cluster, ok := clusterAt(h.ExternalURL, in.Spec.Cluster.Server)
	if !ok {
		return errs.InvalidField("spec.cluster.server", "is not a workspace of this hub, which are at "+h.ExternalURL+"/clusters/{id}")
	}
	if _, err := h.Enter(httpmw.CallerOf(r).User.Name, strings.TrimSuffix(cluster, "/")); err != nil {
		return err
	}
	token, err := httpmw.CallerOf(r).Bearer()
	if err != nil {
		return err
	}
	expires := metav1.NewTime(h.Clock.Now().Add(lifetime))
	if end := httpmw.CallerOf(r).ExpiresAt(); !end.IsZero() && end.Before(expires.Time) {
		expires = metav1.NewTime(end)
	}
	// A status in the request is ignored.
	in.Status = &clientauthenticationv1.ExecCredentialStatus{Token: token, ExpirationTimestamp: &expires}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.Write(w, http.StatusOK, in)
}

// clusterAt returns the cluster that the server of a kubeconfig names. ok is false if the server is not
// at the origin of the hub. kubectl connects to the same server whether the scheme and the host
// are in upper or lower case, and with or without the default port.
func clusterAt(hub, server string) (cluster string, ok bool) {
	host, path := split(server)
	if own, _ := split(hub); host == "" || host != own {
		return "", false
	}
	return strings.CutPrefix(path, "/clusters/")
}

// split returns the host of an https URL, with the port unless that is the default, and the path as it
// was sent. The host is empty for other URLs.
func split(url string) (host, path string) {
	const scheme = "https://"
	if len(url) < len(scheme) || !strings.EqualFold(url[:len(scheme)], scheme) {
		return "", ""
	}
	host, path = url[len(scheme):], ""
	if slash := strings.IndexByte(host, '/'); slash >= 0 {
		host, path = host[:slash], host[slash:]
	}
	if _, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		host = strings.TrimSuffix(host, ":443")
	}
	return strings.ToLower(host), path
}
