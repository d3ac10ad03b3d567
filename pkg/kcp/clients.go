package kcp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// RootCluster is the logical cluster of kcp's root workspace. It has the Shards, and kcp lets
// everybody enter it to ask who they are.
const RootCluster = "root"

// Object is what the typed clients carry.
type Object interface {
	runtime.Object
	metav1.Object
}

// ClusterOf is the logical cluster that an object came from.
func ClusterOf(o metav1.Object) string { return string(logicalcluster.From(o)) }

// Client is a typed client of one kind in one logical cluster.
type Client[T Object] = gentype.Client[T]

// Clients makes clients of a kcp. They are cheap to make: all share one transport. kcp's
// own priority and fairness limits their rate, nothing here does.
type Clients struct {
	transport *transport.Transport
	options   transport.Options
	http      *http.Client
	codecs    serializer.CodecFactory
	params    runtime.ParameterCodec
	kinds     *kinds
}

// NewClients returns clients of the kcp at config.Host, a base URL without
// "/clusters". It registers kedge_kcp_*.
func NewClients(config *rest.Config, metrics prometheus.Registerer) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.UserAgent = "kedge-hub"
	t, err := transport.New(config, metrics)
	if err != nil {
		return nil, err
	}
	c := &Clients{
		transport: t, codecs: serializer.NewCodecFactory(scheme()), params: runtime.NewParameterCodec(scheme()),
		kinds: &kinds{known: map[schema.GroupVersionKind]resource{}},
	}
	return c.with(transport.Options{Config: config})
}

// with returns the same clients with other options of the transport.
func (c *Clients) with(options transport.Options) (*Clients, error) {
	chain, err := c.transport.RoundTripper(options)
	if err != nil {
		return nil, err
	}
	other := *c
	other.options, other.http = options, &http.Client{Transport: chain}
	return &other, nil
}

// As returns clients of the same kcp with the credential of another configuration: its
// token, the token that it follows, or its client certificate; and with its CA, if it has one.
func (c *Clients) As(as *rest.Config) (*Clients, error) {
	options := c.options
	options.Config = rest.CopyConfig(c.options.Config)
	options.Config.BearerToken, options.Config.BearerTokenFile, options.Config.WrapTransport = as.BearerToken, as.BearerTokenFile, as.WrapTransport
	own, cert := &options.Config.TLSClientConfig, as.TLSClientConfig
	own.CertFile, own.KeyFile, own.CertData, own.KeyData = cert.CertFile, cert.KeyFile, cert.CertData, cert.KeyData
	if len(cert.CAData) > 0 || cert.CAFile != "" {
		own.CAFile, own.CAData = cert.CAFile, cert.CAData
	}
	t, err := c.transport.As(options.Config)
	if err != nil {
		return nil, err
	}
	other := *c
	other.transport = t
	return other.with(options)
}

// At returns the same clients for another server of the same kcp: a shard.
func (c *Clients) At(base string) *Clients {
	return c.altered(func(o *transport.Options) { o.Config.Host = base })
}

// Anonymous returns clients of the same kcp without a credential.
func (c *Clients) Anonymous() (*Clients, error) { return c.As(&rest.Config{}) }

// FailFast returns the same clients for requests that a caller waits for: they fail as
// soon as kcp is unavailable, with an error that the caller may be told.
func (c *Clients) FailFast() *Clients {
	return c.altered(func(o *transport.Options) { o.FailFast = true })
}

// Fresh returns the same clients with a connection of its own for every request.
func (c *Clients) Fresh() *Clients { return c.altered(func(o *transport.Options) { o.Fresh = true }) }

// Fenced returns the same clients whose writes need a fencing right; without it they
// fail with transport.ErrFenced.
func (c *Clients) Fenced(right transport.Right) *Clients {
	return c.altered(func(o *transport.Options) { o.Right = right })
}

// Traced returns the same clients with a layer that makes spans of their requests.
func (c *Clients) Traced(layer func(http.RoundTripper) http.RoundTripper) *Clients {
	return c.altered(func(o *transport.Options) { o.Trace = layer })
}

// Announcing returns the same clients that call a func before each request that may write, with its context.
func (c *Clients) Announcing(before func(context.Context)) *Clients {
	return c.altered(func(o *transport.Options) { o.BeforeWrite = before })
}

// Admitted returns the same clients that ask before they create an object.
func (c *Clients) Admitted(admission transport.Admission) *Clients {
	return c.altered(func(o *transport.Options) { o.Admission = admission })
}

// altered is with for options that have made a chain before.
func (c *Clients) altered(alter func(*transport.Options)) *Clients {
	options := c.options
	options.Config = rest.CopyConfig(c.options.Config)
	alter(&options)
	other, err := c.with(options)
	utilruntime.Must(err)
	return other
}

// Transport is what sends the requests of these clients and of all that were made of
// them.
func (c *Clients) Transport() *transport.Transport { return c.transport }

// Health is whether kcp is available.
func (c *Clients) Health() *transport.Health { return c.transport.Health() }

// Close closes the connections that nothing uses.
func (c *Clients) Close() { c.transport.Close() }

// NewScheme returns a scheme with every kind that the hub reads or writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, coordinationv1.AddToScheme,
		admissionv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
		kcptenancyv1alpha1.AddToScheme, kcpcorev1alpha1.AddToScheme,
		kcpapisv1alpha1.AddToScheme, kcpapisv1alpha2.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// HTTP returns the HTTP client and the base URL, for raw requests.
func (c *Clients) HTTP() (*http.Client, string) { return c.http, c.options.Config.Host }

// Parameters encodes the options of lists and watches.
func (c *Clients) Parameters() runtime.ParameterCodec { return c.params }

// REST returns a client for one group and version at base, which is
// "{host}/clusters/{cluster}" or that of a virtual workspace.
func (c *Clients) REST(base string, gv schema.GroupVersion) rest.Interface {
	config := rest.CopyConfig(c.options.Config)
	config.Host = base
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	through := c.http
	if strings.HasSuffix(base, clustersPath) {
		through = &http.Client{Transport: noCluster{}}
	}
	client, err := rest.RESTClientForConfigAndClient(config, through)
	// The base comes from kcp or from a validated flag; a malformed one is a bug.
	utilruntime.Must(err)
	return client
}

// clustersPath is the path below which kcp serves logical clusters.
const clustersPath = "/clusters/"

// ClusterURL is the base URL of a logical cluster, named by ID or by path.
func (c *Clients) ClusterURL(cluster string) string {
	return c.options.Config.Host + clustersPath + cluster
}

// noCluster refuses the requests to a logical cluster without a name. They would reach another one:
// client-go removes the empty segment, and kcp takes the next one, "api" or "apis", for the name.
type noCluster struct{}

// RoundTrip implements http.RoundTripper.
func (noCluster) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the logical cluster has no name")
}
