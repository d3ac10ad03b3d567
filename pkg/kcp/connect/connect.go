package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/storage"
)

// Options say which kcp the hub uses.
type Options struct {
	// Kubeconfig is the kubeconfig of an admin of an external kcp. Empty means an embedded
	// kcp.
	Kubeconfig string
	// Embedded are the options of the embedded kcp.
	Embedded EmbeddedOptions
}

// kubeconfig is the kubeconfig of kcp's admin.
func (o Options) kubeconfig() string {
	if o.Kubeconfig != "" {
		return o.Kubeconfig
	}
	return filepath.Join(o.Embedded.Dir, "admin.kubeconfig")
}

// EmbeddedOptions are the options of the embedded kcp.
type EmbeddedOptions struct {
	// Dir is the directory of all data: etcd's files, certificates, keys and
	// admin.kubeconfig.
	Dir string
	// Port is kcp's port; EtcdClientPort and EtcdPeerPort are etcd's. All are on
	// loopback. 0 chooses a free port once for a Dir, because kcp stores URLs that
	// contain its port.
	Port, EtcdClientPort, EtcdPeerPort int
	// Tokens authenticates static tokens; nil for none. It is asked for every request, so that
	// tokens can change while kcp runs.
	Tokens authenticator.Token
	// JWT are the issuers of people's tokens; empty for none.
	JWT []apiserverv1.JWTAuthenticator
	// EtcdQuota is how large the database of etcd may grow, in bytes. 0 means 8 GiB. etcd itself
	// refuses writes when its file is larger by the reserve of 64 MiB.
	EtcdQuota int64
	// Metrics is where kedge_etcd_* are registered; nil for nowhere.
	Metrics prometheus.Registerer
	// Storage is told how full etcd is; nil if nobody is.
	Storage *storage.Monitor
}

// KCP is a kcp that runs in this process.
type KCP interface {
	// Run serves until ctx ends, and returns when everything is closed.
	Run(ctx context.Context) error
	// Ready is closed when kcp serves.
	Ready() <-chan struct{}
	// AdminConfig is the client configuration of kcp's admin, valid after Ready is closed.
	AdminConfig() (*rest.Config, error)
	// SetIssuers replaces the issuers of people's tokens.
	SetIssuers(jwt []apiserverv1.JWTAuthenticator) error
	// Snapshot calls write with a snapshot of etcd, which ends with its hash, and with the revision of etcd when it
	// was asked for.
	Snapshot(ctx context.Context, write func(revision, size int64, r io.Reader) error) error
}

// NewKCP returns an embedded kcp. It is a parameter, so that programs that use an external kcp
// alone do not link one.
type NewKCP func(EmbeddedOptions) (KCP, error)

// Connection is a kcp that serves.
type Connection struct {
	// Config is the configuration of kcp's admin.
	Config *rest.Config
	// Embedded is nil for an external kcp.
	Embedded KCP
	// Done is closed when an embedded kcp has ended.
	Done <-chan struct{}
	// Failed receives the error if it ended before its context.
	Failed <-chan error
}

// Start starts the embedded kcp, if there is one, and waits until it serves.
func Start(ctx context.Context, o Options, newKCP NewKCP) (*Connection, error) {
	ended, failure := make(chan struct{}), make(chan error, 1)
	if o.Kubeconfig != "" {
		close(ended)
		config, err := externalConfig(ctx, o.Kubeconfig)
		return &Connection{Config: config, Done: ended, Failed: failure}, err
	}
	if newKCP == nil {
		return nil, errors.New("--kcp-kubeconfig: this build has no kcp of its own; name one")
	}
	own, err := newKCP(o.Embedded)
	if err != nil {
		return nil, err
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
		return nil, ctx.Err()
	case err := <-failure:
		<-ended
		return nil, err
	case <-own.Ready():
	}
	config, err := own.AdminConfig()
	return &Connection{Config: config, Embedded: own, Done: ended, Failed: failure}, err
}

// Clients returns clients of kcp's admin for a command, which asks an external kcp and has no metrics. They
// follow the kubeconfig until ctx ends.
func Clients(ctx context.Context, o Options) (*kcp.Clients, error) {
	found, err := Start(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	clients, err := kcp.NewClients(found.Config, prometheus.NewRegistry())
	if err != nil {
		return nil, fmt.Errorf("--kcp-kubeconfig: %w", err)
	}
	return clients, nil
}
