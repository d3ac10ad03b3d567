package options

import (
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Options are the flags of kedge-hub before validation. The name of a flag is in the
// comment of each field; AddFlags has the same text for --help.
type Options struct {
	// DataDir (--data-dir) is the directory of the hub's files: certificates in tls/, and
	// the data of the embedded kcp and etcd in kcp/. Default .kedge.
	DataDir string
	AddressOptions
	// TLSCertFile, TLSKeyFile and TLSCAFile (--tls-cert-file, --tls-key-file,
	// --tls-ca-file) are PEM files: the serving certificate with its chain, its private
	// key, and the CA certificates that clients are told to trust. All or none are given;
	// with none the hub uses a CA of its own.
	TLSCertFile string
	TLSKeyFile  string
	TLSCAFile   string

	// TokenFile (--token-file) is a CSV of static tokens in the format of kube-apiserver.
	// Empty means no static tokens.
	TokenFile string
	// OIDC is the issuer of people's ID tokens.
	OIDC OIDCOptions
	// CI are the issuers of the ID tokens of jobs.
	CI CIOptions
	PortalOptions
	AdminOptions

	// BindableClusterRoles (--bindable-cluster-role) are the names of ClusterRoles that
	// Memberships can bind although kedge:workspace:admin does not cover their rules. Default
	// none.
	BindableClusterRoles []string

	// RootWorkspace (--root-workspace) is the path of the root workspace of the hub's tree.
	// Default root:kedge.
	RootWorkspace string
	// KCPKubeconfig (--kcp-kubeconfig) is a kubeconfig of an admin of an external kcp. Empty
	// means that the hub runs an embedded kcp.
	KCPKubeconfig string
	// LeaderElect (--leader-elect) lets one of several replicas run the controllers, elected
	// by a Lease. Default true. The embedded kcp needs no election.
	LeaderElect bool
	// KCPPort, EtcdClientPort and EtcdPeerPort (--kcp-port, --etcd-client-port,
	// --etcd-peer-port) are the ports of the embedded kcp and etcd on 127.0.0.1. 0 chooses a
	// free one. Defaults 6443, 2379 and 2380.
	KCPPort        int
	EtcdClientPort int
	EtcdPeerPort   int

	// DefaultOrgQuota (--default-org-quota) is the number of Organizations that a User can
	// create, unless User.spec.orgQuota is set. Default 10.
	DefaultOrgQuota int
	// DefaultWorkspaceQuota (--default-workspace-quota) is the number of Workspaces that an
	// Organization can have, unless Organization.spec.workspaceQuota is set. Default 50.
	DefaultWorkspaceQuota int
	GraceOptions
	// Registration (--registration) says who can sign up: open, approval or closed. Default
	// open.
	Registration string
	// PersonalOrgs (--personal-orgs) creates a personal Organization for each new User.
	// Default true.
	PersonalOrgs bool
	// PersonalOrgRole (--personal-org-role) is the role of Users in their personal
	// Organization: admin or member. Default admin.
	PersonalOrgRole v1alpha1.Role
	GroupOptions
	// AuditLogFile (--audit-log-file) is the file that audit events about rights are appended to; the
	// file of proxied writes is beside it, and "-" is the standard output. Default
	// {data-dir}/audit/rights.jsonl, beside writes.jsonl.
	AuditLogFile string
	// WorkspaceTemplate (--workspace-template) is a directory of manifests that the hub
	// applies in each child Workspace. Empty means none.
	WorkspaceTemplate string
	// CreateTimeout (--create-timeout) is the time that a create waits for the object to be
	// Ready before it answers 202. Default 10s.
	CreateTimeout time.Duration
	// DrainTimeout (--drain-timeout) is the time that open requests have after SIGTERM.
	// Default 20s.
	DrainTimeout time.Duration

	// AuditLog are the settings of AuditLogFile.
	AuditLog AuditOptions
	// Records are the settings of the records database.
	Records RecordOptions
	// Billing are the settings of cost centers.
	Billing BillingOptions
	// Bots are the limits of tokens of bots.
	Bots BotOptions
	// Policy is about the admission policy of Workspaces.
	Policy PolicyOptions
	// Spares are the numbers of workspaces that are kept ready.
	Spares SpareOptions

	// Catalog are the settings of the catalog.
	Catalog CatalogOptions
	// Storage are the limits of what is stored.
	Storage StorageOptions

	// Sessions are the sessions of people who log in.
	Sessions SessionOptions

	// Limits are the limits of clients.
	Limits LimitOptions

	// Tracing are the settings of traces.
	Tracing TracingOptions
	// LogFormat (--log-format) is console or json. Default console.
	LogFormat string
	// LogLevel (--log-level) is debug, info, warn or error. Default info.
	LogLevel string

	// FollowTimeout is the time that a write waits until caches show it. It is not a flag;
	// tests set it. Default 5s.
	FollowTimeout time.Duration
	// Clock is the clock of deletions. It is not a flag; tests set it. Default is the real
	// clock.
	Clock clock.WithTicker
}

// New returns the default options.
func New() *Options {
	return &Options{
		DataDir:               ".kedge",
		AddressOptions:        AddressOptions{ListenAddress: "127.0.0.1:9443", MetricsListenAddress: "127.0.0.1:9464"},
		RootWorkspace:         "root:kedge",
		LeaderElect:           true,
		KCPPort:               6443,
		EtcdClientPort:        2379,
		EtcdPeerPort:          2380,
		DefaultOrgQuota:       10,
		DefaultWorkspaceQuota: 50,
		GraceOptions:          GraceOptions{DeletionGrace: 720 * time.Hour, ExpiredWorkspaceGrace: 24 * time.Hour},
		Registration:          httpmw.RegistrationOpen,
		PersonalOrgs:          true,
		PortalOptions:         PortalOptions{Portal: true},
		PersonalOrgRole:       v1alpha1.RoleAdmin,
		GroupOptions:          GroupOptions{GroupMaxAge: 24 * time.Hour},
		CreateTimeout:         10 * time.Second,
		DrainTimeout:          20 * time.Second,
		OIDC:                  newOIDCOptions(),
		AuditLog:              newAuditOptions(),
		Records:               newRecordOptions(),
		Bots:                  newBotOptions(),
		Policy:                newPolicyOptions(),
		Spares:                newSpareOptions(),
		Storage:               newStorageOptions(),
		Sessions:              newSessionOptions(),
		Limits:                newLimitOptions(),
		Tracing:               newTracingOptions(),
		LogFormat:             "console",
		LogLevel:              "info",
		FollowTimeout:         5 * time.Second,
		Clock:                 clock.RealClock{},
	}
}

// AddFlags defines the flags in fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory of the hub's files: certificates in tls/ and, with an embedded kcp, the data of kcp and etcd in kcp/.")
	o.AddressOptions.addFlags(fs)
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "PEM file with the serving certificate and its chain, instead of a certificate signed by a CA of the hub's own. Requires --tls-key-file and --tls-ca-file.")
	fs.StringVar(&o.TLSKeyFile, "tls-key-file", o.TLSKeyFile, "PEM file with the private key of --tls-cert-file.")
	fs.StringVar(&o.TLSCAFile, "tls-ca-file", o.TLSCAFile, "PEM file with the CA certificates that clients trust. They are written to kubeconfigs.")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile, "CSV file of static tokens, token,username,uid,\"group1,group2\", for development and break-glass access. The embedded kcp uses it too; an external kcp needs the same file as --token-auth-file.")
	o.OIDC.addFlags(fs)
	o.CI.addFlags(fs)
	o.PortalOptions.addFlags(fs)
	o.AdminOptions.addFlags(fs)
	fs.StringSliceVar(&o.BindableClusterRoles, "bindable-cluster-role", o.BindableClusterRoles, "Name of a ClusterRole of Workspaces that roles[] of a Membership can bind although kedge:workspace:admin does not cover its rules. Can be repeated.")
	fs.StringVar(&o.RootWorkspace, "root-workspace", o.RootWorkspace, "Path of the root workspace of the hub's tree. It is created if it does not exist.")
	fs.StringVar(&o.KCPKubeconfig, "kcp-kubeconfig", o.KCPKubeconfig, "Kubeconfig of an admin of an external kcp. Without it the hub runs an embedded kcp.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Elect one of the replicas that share --kcp-kubeconfig to run the controllers, with a Lease in the root workspace. Disable it only if there is never more than one replica. Ignored with an embedded kcp.")
	fs.IntVar(&o.KCPPort, "kcp-port", o.KCPPort, "Port of the embedded kcp on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.EtcdClientPort, "etcd-client-port", o.EtcdClientPort, "Client port of the embedded etcd on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.EtcdPeerPort, "etcd-peer-port", o.EtcdPeerPort, "Peer port of the embedded etcd on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.DefaultOrgQuota, "default-org-quota", o.DefaultOrgQuota, "Number of organizations that a person can create, unless User.spec.orgQuota is set.")
	fs.IntVar(&o.DefaultWorkspaceQuota, "default-workspace-quota", o.DefaultWorkspaceQuota, "Number of workspaces that an organization can have, unless Organization.spec.workspaceQuota is set.")
	o.GraceOptions.addFlags(fs)
	fs.StringVar(&o.Registration, "registration", o.Registration, "Who can sign up: open for everybody with a valid token, approval for people whom a platform admin approves, closed for nobody. With approval and closed, people with an open invitation sign up, too, and are approved. People who were rejected stay rejected.")
	fs.BoolVar(&o.PersonalOrgs, "personal-orgs", o.PersonalOrgs, "Create a personal organization for everybody who signs up.")
	fs.StringVar((*string)(&o.PersonalOrgRole), "personal-org-role", string(o.PersonalOrgRole), "Role of people in their personal organization: admin or member.")
	o.GroupOptions.addFlags(fs)
	fs.StringVar(&o.AuditLogFile, "audit-log-file", o.AuditLogFile, "File to which audit events about rights are appended, one JSON object per line; proxied writes go to a file with -writes before its extension. - is the standard output, for both. If it cannot be written, only changes that take rights away are carried out. Without it the files are rights.jsonl and writes.jsonl in audit/ of --data-dir.")
	fs.StringVar(&o.WorkspaceTemplate, "workspace-template", o.WorkspaceTemplate, "Directory of manifests (.yaml, .yml, .json) that the hub applies in every workspace: APIBindings with the claims that they accept, and further objects. See config/example-template/workspace. Without it nothing is bound.")
	fs.DurationVar(&o.CreateTimeout, "create-timeout", o.CreateTimeout, "Time that a create request waits until the object is ready before it answers 202.")
	fs.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout, "Time that open requests have to finish after SIGTERM.")
	o.AuditLog.addFlags(fs)
	o.Records.addFlags(fs)
	o.Billing.addFlags(fs)
	o.Bots.addFlags(fs)
	o.Policy.addFlags(fs)
	o.Spares.addFlags(fs)
	o.Catalog.addFlags(fs)
	o.Storage.addFlags(fs)
	o.Sessions.addFlags(fs)
	o.Limits.addFlags(fs)
	o.Tracing.addFlags(fs)
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "Log format: console or json.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "Log level: debug, info, warn or error. Logs of kcp and client-go are shown at debug only.")
}

// Config is a validated configuration. Only Complete and CompleteWithoutServing return one.
type Config struct{ completed }

type completed struct {
	Options
	// Tree has the workspace paths below RootWorkspace.
	Tree tenancy.Tree
	// Embedded is true if the hub runs an embedded kcp.
	Embedded bool
	// Template are the objects in the directory WorkspaceTemplate.
	Template []*unstructured.Unstructured

	// TrustedProxies are the networks of Limits.TrustedProxyCIDRs.
	TrustedProxies httpmw.TrustedProxies
	// Issuer is the configuration of OIDC; nil means that nobody logs in with it.
	Issuer *auth.OIDCConfig
	// SessionKeys are those of the file Sessions.KeyFile; nil without a file.
	SessionKeys [][]byte
	// backendRoots verify the servers of providers, traceRoots the collector; nil means the system's.
	backendRoots, traceRoots *x509.CertPool
}

// Complete validates the options of a hub that serves and derives values from them. The error names
// every invalid flag and how to correct it.
func (o Options) Complete() (Config, error) { return o.complete(true) }

// CompleteWithoutServing is Complete for a command that serves nothing. No client has to reach it, so it
// needs no --external-url, whatever --listen-address covers: the image sets that one for every command.
func (o Options) CompleteWithoutServing() (Config, error) { return o.complete(false) }

// complete validates the options and derives values from them. serves is false for a command that serves nothing.
func (o Options) complete(serves bool) (Config, error) {
	var bad []error
	fail := func(flag, format string, args ...any) {
		bad = append(bad, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
	}
	tree, err := tenancy.NewTree(o.RootWorkspace)
	if err != nil {
		fail("root-workspace", "%v", err)
	}
	if o.DataDir == "" {
		fail("data-dir", "must be the path of a directory")
	} else if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		fail("data-dir", "%v", err)
	}
	o.AddressOptions.complete(serves, fail)
	given := 0
	for flag, file := range map[string]string{"tls-cert-file": o.TLSCertFile, "tls-key-file": o.TLSKeyFile, "tls-ca-file": o.TLSCAFile} {
		if file != "" {
			given++
			readable(flag, file, fail)
		}
	}
	if given != 0 && given != 3 {
		fail("tls-cert-file", "--tls-cert-file, --tls-key-file and --tls-ca-file must be given together")
	}
	if o.TokenFile != "" {
		readable("token-file", o.TokenFile, fail)
		if o.TokenFile, err = filepath.Abs(o.TokenFile); err != nil {
			fail("token-file", "%v", err)
		}
	}
	if o.KCPKubeconfig != "" {
		readable("kcp-kubeconfig", o.KCPKubeconfig, fail)
	}
	for flag, p := range map[string]int{"kcp-port": o.KCPPort, "etcd-client-port": o.EtcdClientPort, "etcd-peer-port": o.EtcdPeerPort} {
		if p < 0 || p > 65535 {
			fail(flag, "%d is not a port; give 0 to 65535", p)
		}
	}
	for flag, n := range map[string]int{"default-org-quota": o.DefaultOrgQuota, "default-workspace-quota": o.DefaultWorkspaceQuota} {
		if n < 0 {
			fail(flag, "%d is negative; give a number of objects", n)
		}
	}
	for flag, d := range map[string]time.Duration{"deletion-grace": o.DeletionGrace, "expired-workspace-grace": o.ExpiredWorkspaceGrace, "create-timeout": o.CreateTimeout, "drain-timeout": o.DrainTimeout} {
		if d <= 0 {
			fail(flag, "%s is not a positive duration, such as 10s", d)
		}
	}
	if !slices.Contains([]string{httpmw.RegistrationOpen, httpmw.RegistrationApproval, httpmw.RegistrationClosed}, o.Registration) {
		fail("registration", "%q is not open, approval or closed", o.Registration)
	}
	o.GroupOptions.complete(fail)
	if !o.PersonalOrgRole.AtLeast(v1alpha1.RoleMember) {
		fail("personal-org-role", "%q is not admin or member", o.PersonalOrgRole)
	}
	for _, name := range o.BindableClusterRoles {
		if name == "" || tenancy.ReservedRole(name) {
			fail("bindable-cluster-role", "%q cannot be bound through a Membership; name another ClusterRole", name)
		}
	}
	var manifests []*unstructured.Unstructured
	if o.WorkspaceTemplate != "" {
		if manifests, err = template.Load(o.WorkspaceTemplate); err != nil {
			fail("workspace-template", "%v", err)
		}
	}
	if o.AuditLogFile == "" && o.DataDir != "" {
		o.AuditLogFile = audit.DefaultFile(o.DataDir)
	}
	o.Records.complete(fail, o.KCPKubeconfig == "", o.KCPKubeconfig != "" && o.LeaderElect, o.DataDir, o.AuditLogFile)
	o.PortalOptions.complete(fail)
	issuer := o.OIDC.complete(fail)
	o.CI.complete(fail)
	trusted := o.Limits.complete(fail)
	o.AuditLog.complete(fail)
	o.Billing.complete(fail, o.Records.Records())
	o.Bots.complete(fail)
	o.Storage.complete(fail)
	o.Policy.complete(fail)
	o.Spares.complete(fail)
	keys, roots, traceRoots := o.Sessions.complete(fail), o.Catalog.complete(fail), o.Tracing.complete(fail)
	if err := errors.Join(bad...); err != nil {
		return Config{}, err
	}
	return Config{completed{
		Options: o, Tree: tree, Embedded: o.KCPKubeconfig == "", Template: manifests, TrustedProxies: trusted,
		Issuer: issuer, SessionKeys: keys, backendRoots: roots, traceRoots: traceRoots,
	}}, nil
}

// KCP returns the options of the connection to kcp. The directory of the embedded kcp can be a
// mount of its own.
func (c Config) KCP() connect.Options {
	o := connect.Options{Kubeconfig: c.KCPKubeconfig, Embedded: connect.EmbeddedOptions{
		Dir: filepath.Join(c.DataDir, "kcp"), Port: c.KCPPort,
		EtcdClientPort: c.EtcdClientPort, EtcdPeerPort: c.EtcdPeerPort, EtcdQuota: c.Storage.etcdQuota,
	}}
	if c.Issuer != nil {
		o.Embedded.JWT = []apiserverv1.JWTAuthenticator{c.Issuer.JWTAuthenticator()}
	}
	return o
}

// Certificate returns the options of the serving certificate.
func (c Config) Certificate() certs.Options {
	return certs.Options{
		CertFile: c.TLSCertFile, KeyFile: c.TLSKeyFile, CAFile: c.TLSCAFile,
		Dir: filepath.Join(c.DataDir, "tls"), ExternalURL: c.ExternalURL, ListenAddress: c.ListenAddress,
	}
}
