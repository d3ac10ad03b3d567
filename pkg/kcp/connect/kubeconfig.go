package connect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// ShardAdmin is the context of kcp's admin.kubeconfig with kcp's shard admin, who has rights that
// kcp's admission refuses to other admins.
const ShardAdmin = "shard-base"

// externalConfig is the client configuration of --kcp-kubeconfig. It follows the token in the
// file, because kcp gives its admin a new one at every start.
func externalConfig(ctx context.Context, file string) (*rest.Config, error) {
	config, err := transport.Follow(ctx, "--kcp-kubeconfig", func() (*rest.Config, error) { return readKubeconfig(file, "") })
	if err != nil {
		return nil, fmt.Errorf("--kcp-kubeconfig: %w", err)
	}
	return config, nil
}

// readKubeconfig reads a context of a kubeconfig, or the current one if context is empty. It
// removes the path of a workspace from the server URL, because the hub adds one to each request.
func readKubeconfig(file, context string) (*rest.Config, error) {
	raw, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, nil, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	if config.Insecure {
		return nil, errors.New("insecure-skip-tls-verify is set; give the CA of kcp instead")
	}
	if config.Host, err = baseURL(config.Host); err != nil {
		return nil, err
	}
	return config, rest.LoadTLSFiles(config)
}

// Renew reads the kubeconfig of an external kcp again, and has new connections use its CA and its
// client certificate. A new token is read when kcp refuses the old one. An embedded kcp has nothing
// to renew.
func Renew(o Options, clients *kcp.Clients) (*rest.Config, error) {
	config, err := readKubeconfig(o.Kubeconfig, "")
	if err != nil {
		return nil, err
	}
	if _, host := clients.HTTP(); config.Host != host {
		return nil, fmt.Errorf("it names another server than %s; restart the hub to use it", host)
	}
	return config, clients.Transport().Renew(config)
}

// RenewShardAdmin is Renew for the clients of ShardAdminClients.
func RenewShardAdmin(o Options, admin *kcp.Clients) error {
	config, err := readKubeconfig(o.Kubeconfig, ShardAdmin)
	if err != nil {
		return fmt.Errorf("the context %s: %w", ShardAdmin, err)
	}
	if _, host := admin.HTTP(); config.Host != host {
		return fmt.Errorf("the context %s names another server than %s; restart the hub to use it", ShardAdmin, host)
	}
	return admin.Transport().RenewOwn(config)
}

// Files are the kubeconfig of an external kcp and the files that it names.
func Files(o Options) []string {
	files := []string{o.Kubeconfig}
	raw, err := clientcmd.LoadFromFile(o.Kubeconfig)
	if err != nil || clientcmd.ResolveLocalPaths(raw) != nil {
		return files
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Clusters)) {
		files = append(files, raw.Clusters[name].CertificateAuthority)
	}
	for _, name := range slices.Sorted(maps.Keys(raw.AuthInfos)) {
		files = append(files, raw.AuthInfos[name].ClientCertificate, raw.AuthInfos[name].ClientKey)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// ShardAdminClients returns the clients with the right to deactivate logical clusters: those of
// kcp's shard admin, if the kubeconfig has its context as kcp's own file does. Otherwise it returns
// clients, the admin's. The context may name their server, or else a shard of the same kcp, which their
// server is then the front proxy of: sharded is true, and the clients are for the server of the context.
func ShardAdminClients(ctx context.Context, o Options, clients *kcp.Clients) (admin *kcp.Clients, sharded bool, err error) {
	read := func() (*rest.Config, error) { return readKubeconfig(o.kubeconfig(), ShardAdmin) }
	config, err := read()
	if err != nil || config.BearerToken == "" && config.CertFile == "" && len(config.CertData) == 0 {
		return clients, false, nil
	}
	if _, host := clients.HTTP(); config.Host != host {
		sharded = true
		// A credential must not be sent to a server that is not of this kcp.
		known, err := isShard(ctx, clients, config.Host)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, false, err
		}
		if !known {
			log.From(ctx).Warn("the context "+ShardAdmin+" of kcp's kubeconfig is not used: its server is neither that of the current context nor a shard of that kcp",
				zap.String("server", config.Host), zap.Error(err))
			return clients, false, nil
		}
	}
	config, err = transport.Follow(ctx, "the context "+ShardAdmin+" of kcp's kubeconfig", read)
	if err != nil {
		return nil, false, err
	}
	if admin, err = clients.As(config); err == nil && sharded {
		admin = admin.At(config.Host)
	}
	return admin, sharded, err
}

// baseURL is the URL of a server without the path of a workspace.
func baseURL(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("the server %q is not an https URL", server)
	}
	path, _, _ := strings.Cut(u.Path, "/clusters/")
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(path, "/")}).String(), nil
}
