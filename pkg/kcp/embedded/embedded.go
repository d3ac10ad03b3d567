package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/kcp-dev/kcp/pkg/admission/mutatingadmissionpolicy"
	"github.com/kcp-dev/kcp/pkg/server"
	serveroptions "github.com/kcp-dev/kcp/pkg/server/options"
	"github.com/kcp-dev/kcp/pkg/server/options/batteries"
	"github.com/prometheus/client_golang/prometheus"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
)

// host is the only address that kcp and etcd listen on.
const host = "127.0.0.1"

// Audience is the audience of bots' tokens, besides kcp's own (O-14).
const Audience = "kedge"

const issuer = "https://kcp.default.svc"

// Options configure an embedded kcp.
type Options = connect.EmbeddedOptions

// Change changes the options of kcp.
type Change func(*serveroptions.Options)

// SkipAccountLookup has kcp accept tokens of ServiceAccounts and Secrets that were deleted, as some
// installations of kcp do. The hub does not use it; the kcp of its tests does.
func SkipAccountLookup(o *serveroptions.Options) {
	o.GenericControlPlane.Authentication.ServiceAccounts.Lookup = false
}

// Server is an embedded kcp with its etcd.
type Server struct {
	options Options
	changes []Change
	ready   chan struct{}
	locked  *os.File
	// maintained counts what the keeper does.
	maintained *prometheus.CounterVec
	copying    *copying
}

// New checks the options, creates and locks the directory, and chooses ports. The error
// for a directory or port in use names the hub's flag for it.
func New(options Options, changes ...Change) (*Server, error) {
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder of kcp: %w", err)
	}
	locked, err := lock(options.Dir)
	if err != nil {
		return nil, err
	}
	if err := choosePorts(&options); err != nil {
		_ = locked.Close()
		return nil, err
	}
	options.EtcdQuota = cmp.Or(options.EtcdQuota, defaultQuota)
	s := &Server{options: options, changes: changes, ready: make(chan struct{}), locked: locked, maintained: newMaintained(), copying: newCopying()}
	if options.Metrics != nil {
		if err := errors.Join(options.Metrics.Register(newDatabase(prometheus.DefaultGatherer)), options.Metrics.Register(s.maintained)); err != nil {
			_ = locked.Close()
			return nil, err
		}
	}
	return s, nil
}

// Ready is closed when kcp serves and its root workspace is set up.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// KubeconfigPath is the path of the admin kubeconfig that kcp writes with mode 0600.
func (s *Server) KubeconfigPath() string {
	return filepath.Join(s.options.Dir, "admin.kubeconfig")
}

// AdminConfig returns the admin's client configuration for the base URL of kcp. It is
// available once Ready is closed.
func (s *Server) AdminConfig() (*rest.Config, error) {
	raw, err := clientcmd.LoadFromFile(s.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("read kcp's admin kubeconfig: %w", err)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, "base", nil, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kcp's admin kubeconfig: %w", err)
	}
	return config, nil
}

// Run runs etcd and kcp until ctx ends. It stops kcp first and etcd after it.
func (s *Server) Run(ctx context.Context) error {
	defer func() { _ = s.locked.Close() }()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := renewCertificate(s.options.Dir, time.Now()); err != nil {
		return err
	}
	completed, err := s.complete(ctx)
	if err != nil {
		return err
	}
	etcd, err := configureEtcd(completed.EmbeddedEtcd, completed.GenericControlPlane.Etcd.EnableWatchCache, time.Now())
	if err != nil {
		return fmt.Errorf("configure etcd: %w", err)
	}
	// kcp needs etcd until it has shut down, so etcd has a context of its own that ends
	// later.
	etcdCtx, stopEtcd := context.WithCancel(context.WithoutCancel(ctx))
	dir := completed.EmbeddedEtcd.Directory
	blocks := newReserve(dir)
	if s.options.Storage != nil {
		blocks.held = s.options.Storage.Reserved
	}
	blocks.ready()
	var holding sync.WaitGroup
	defer func() {
		stopEtcd()
		awaitStopped(etcd)
		holding.Wait()
	}()
	if err := startEtcd(etcdCtx, etcd); err != nil {
		return fmt.Errorf("start etcd in %s: %w", s.options.Dir, err)
	}
	holding.Go(func() { blocks.maintain(etcdCtx) })
	keep, err := s.newKeeper(dir)
	if err != nil {
		return err
	}
	keepCtx, stopKeeper := context.WithCancel(etcdCtx)
	var keeping sync.WaitGroup
	keeping.Go(func() { keep.run(keepCtx) })
	defer func() {
		stopKeeper()
		keeping.Wait()
	}()
	useRunningEtcd(completed, s.options.EtcdClientPort)
	config, err := server.NewConfig(ctx, *completed)
	if err != nil {
		return fmt.Errorf("configure kcp: %w", err)
	}
	// There is one server. kcp assumes three by default and then delays every new CRD by
	// five seconds, so that the others can see it.
	config.ApiExtensions.ExtraConfig.MasterCount = 1
	s.acceptTokens(config)
	completedConfig, err := config.Complete()
	if err != nil {
		return fmt.Errorf("configure kcp: %w", err)
	}
	kcp, err := server.NewServer(completedConfig)
	if err != nil {
		return fmt.Errorf("make kcp: %w", err)
	}
	if err := kcp.AddPostStartHook("kedge-hub-ready", func(hook genericapiserver.PostStartHookContext) error {
		// kcp reports healthy only after the hook has returned.
		go func() {
			kcp.WaitForPhase1Finished()
			if hook.Err() == nil {
				close(s.ready)
			}
		}()
		return nil
	}); err != nil {
		return fmt.Errorf("make kcp: %w", err)
	}
	if err := kcp.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("run kcp: %w", err)
	}
	return nil
}

func (s *Server) complete(ctx context.Context) (completed *serveroptions.CompletedOptions, err error) {
	if err := s.keepAuthentication(); err != nil {
		return nil, err
	}
	o := configured(s.options)
	for _, change := range s.changes {
		change(o)
	}
	if completed, err = o.Complete(ctx, s.options.Dir); err != nil {
		return nil, fmt.Errorf("configure kcp: %w", err)
	}
	if err := utilerrors.NewAggregate(completed.Validate()); err != nil {
		return nil, fmt.Errorf("configure kcp: %w", err)
	}
	return completed, nil
}

// configured returns the options of kcp. Standalone makes the flags of a kcp from them.
func configured(options Options) *serveroptions.Options {
	o := serveroptions.NewOptions(options.Dir)
	base := fmt.Sprintf("https://%s", net.JoinHostPort(host, strconv.Itoa(options.Port)))

	serving := o.GenericControlPlane.SecureServing
	serving.BindAddress = net.ParseIP(host)
	serving.BindPort = options.Port
	o.GenericControlPlane.GenericServerRunOptions.AdvertiseAddress = serving.BindAddress
	// Without these kcp publishes the machine's first address that is not loopback.
	o.Extra.ShardBaseURL, o.Extra.ShardExternalURL, o.Extra.ShardVirtualWorkspaceURL = base, base, base
	o.Extra.BatteriesIncluded = []string{batteries.Admin}
	o.HomeWorkspaces.Enabled = false
	// kcp runs this plugin once for every workspace. Each one builds the whole OpenAPI of its workspace
	// every five seconds and keeps it, although only a kcp admin can write such policies.
	admission := o.GenericControlPlane.Admission.GenericAdmission
	admission.DisablePlugins = append(admission.DisablePlugins, mutatingadmissionpolicy.PluginName)

	o.EmbeddedEtcd.ClientPort = strconv.Itoa(options.EtcdClientPort)
	o.EmbeddedEtcd.PeerPort = strconv.Itoa(options.EtcdPeerPort)
	o.EmbeddedEtcd.QuotaBackendBytes = options.EtcdQuota + etcdReserve

	o.GenericControlPlane.Features.EnableProfiling = false
	o.GenericControlPlane.Features.EnableContentionProfiling = false
	authn := o.GenericControlPlane.Authentication
	authn.Anonymous.Allow = false
	authn.APIAudiences = []string{issuer, Audience}
	if len(options.JWT) > 0 {
		authn.AuthenticationConfigFile = filepath.Join(options.Dir, authenticationFile)
	}
	return o
}
