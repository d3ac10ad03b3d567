package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// EmbeddedOptions say how the hub wants a kcp of its own to run.
type EmbeddedOptions struct {
	Dir                                string
	Port, EtcdClientPort, EtcdPeerPort int
	TokenFile                          string
}

// KCP is a kcp that runs in this process.
type KCP interface {
	// Run serves until ctx ends and everything is closed.
	Run(ctx context.Context) error
	// Ready is closed when it serves.
	Ready() <-chan struct{}
	// AdminConfig is its admin's, once Ready is closed.
	AdminConfig() (*rest.Config, error)
}

// shardAdmin is the context of kcp's own admin.kubeconfig whose user may do what
// kcp's admission refuses its admin.
const shardAdmin = "shard-base"

// NewKCP makes a KCP. The server takes it as a parameter, so that what tests the
// hub in front of another kcp does not link a kcp.
type NewKCP func(EmbeddedOptions) (KCP, error)

// startKCP starts the embedded kcp, where there is one, and returns the admin's
// configuration of whichever kcp is used. done is closed when an embedded kcp has
// ended; failed receives why, where it was not ctx.
func startKCP(ctx context.Context, c Config, newKCP NewKCP) (config *rest.Config, done <-chan struct{}, failed <-chan error, err error) {
	ended, failure := make(chan struct{}), make(chan error, 1)
	if !c.Embedded {
		close(ended)
		config, err := externalConfig(ctx, c.KCPKubeconfig)
		return config, ended, failure, err
	}
	if newKCP == nil {
		return nil, nil, nil, errors.New("--kcp-kubeconfig: this build has no kcp of its own; name one")
	}
	own, err := newKCP(EmbeddedOptions{
		Dir: filepath.Join(c.DataDir, "kcp"), Port: c.KCPPort,
		EtcdClientPort: c.EtcdClientPort, EtcdPeerPort: c.EtcdPeerPort, TokenFile: c.TokenFile,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	go func() {
		defer close(ended)
		err := own.Run(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("kcp ended by itself")
		}
		if err != nil {
			failure <- err
		}
	}()
	select {
	case <-ctx.Done():
		<-ended
		return nil, ended, failure, ctx.Err()
	case err := <-failure:
		<-ended
		return nil, ended, failure, err
	case <-own.Ready():
	}
	config, err = own.AdminConfig()
	return config, ended, failure, err
}

// externalConfig is the client configuration of --kcp-kubeconfig. It follows the token in the
// file, because kcp gives its admin a new one at every start.
func externalConfig(ctx context.Context, file string) (*rest.Config, error) {
	config, err := transport.Follow(ctx, "--kcp-kubeconfig", func() (*rest.Config, error) { return readKubeconfig(file, "") })
	if err != nil {
		return nil, fmt.Errorf("--kcp-kubeconfig: %w", err)
	}
	return config, nil
}

// readKubeconfig reads what a context says, or the current one where it is empty,
// and cuts the path of a workspace off the server, because the hub names the
// workspace with every request.
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
	config.Host, err = baseURL(config.Host)
	return config, err
}

// closerClients returns the clients with the right to deactivate logical clusters: those of kcp's
// shard admin, if the kubeconfig has its context as kcp's own file does.
func closerClients(ctx context.Context, c Config, clients *kcp.Clients, host string) (*kcp.Clients, error) {
	file := c.KCPKubeconfig
	if c.Embedded {
		file = filepath.Join(c.DataDir, "kcp", "admin.kubeconfig")
	}
	read := func() (*rest.Config, error) { return readKubeconfig(file, shardAdmin) }
	// A credential is not shown to any other server.
	config, err := read()
	if err != nil || config.BearerToken == "" && config.CertFile == "" && len(config.CertData) == 0 || config.Host != host {
		return clients, nil
	}
	config, err = transport.Follow(ctx, "the context "+shardAdmin+" of kcp's kubeconfig", read)
	if err != nil {
		return nil, err
	}
	return clients.As(config)
}
