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

// EmbeddedOptions are the options of the embedded kcp.
type EmbeddedOptions struct {
	Dir                                string
	Port, EtcdClientPort, EtcdPeerPort int
	TokenFile                          string
}

// KCP is a kcp that runs in this process.
type KCP interface {
	// Run serves until ctx ends, and returns when everything is closed.
	Run(ctx context.Context) error
	// Ready is closed when kcp serves.
	Ready() <-chan struct{}
	// AdminConfig is the client configuration of kcp's admin, valid after Ready is closed.
	AdminConfig() (*rest.Config, error)
}

// shardAdmin is the context of kcp's admin.kubeconfig with kcp's shard admin, who has rights that
// kcp's admission refuses to other admins.
const shardAdmin = "shard-base"

// NewKCP returns an embedded kcp. It is a parameter of Run, so that tests with an external kcp do
// not link one.
type NewKCP func(EmbeddedOptions) (KCP, error)

// startKCP starts the embedded kcp, if there is one, and returns the admin's configuration of the
// embedded or external kcp. done is closed when an embedded kcp has ended. failed receives the
// error if it ended before ctx.
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
		Dir: kcpDir(c), Port: c.KCPPort,
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
	config.Host, err = baseURL(config.Host)
	return config, err
}

// kcpDir is the directory of the embedded kcp. It can be a mount of its own.
func kcpDir(c Config) string { return filepath.Join(c.DataDir, "kcp") }

// closerClients returns the clients with the right to deactivate logical clusters: those of kcp's
// shard admin, if the kubeconfig has its context as kcp's own file does.
func closerClients(ctx context.Context, c Config, clients *kcp.Clients, host string) (*kcp.Clients, error) {
	file := c.KCPKubeconfig
	if c.Embedded {
		file = filepath.Join(kcpDir(c), "admin.kubeconfig")
	}
	read := func() (*rest.Config, error) { return readKubeconfig(file, shardAdmin) }
	// A credential must not be sent to another server.
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
