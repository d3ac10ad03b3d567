package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Options are the hub's flags as they were given.
type Options struct {
	DataDir       string
	ListenAddress string
	ExternalURL   string
	TLSCertFile   string
	TLSKeyFile    string
	TLSCAFile     string

	TokenFile  string
	AdminUsers []string
	// AdminGroups are groups of platform admins.
	AdminGroups []string

	RootWorkspace string
	KCPKubeconfig string
	// LeaderElect lets one replica of several run the reconcilers.
	LeaderElect    bool
	KCPPort        int
	EtcdClientPort int
	EtcdPeerPort   int

	DefaultOrgQuota       int
	DefaultWorkspaceQuota int
	DeletionGrace         time.Duration
	// Registration is open, approval or closed.
	Registration    string
	PersonalOrgs    bool
	PersonalOrgRole v1alpha1.Role
	AuditLogFile    string
	// WorkspaceTemplate is a folder of manifests.
	WorkspaceTemplate string
	CreateTimeout     time.Duration
	DrainTimeout      time.Duration

	MetricsListenAddress string
	LogFormat            string
	LogLevel             string

	// FollowTimeout is how long a write waits until it can be read; not a flag.
	FollowTimeout time.Duration
	// Clock is the time that deletions go by; not a flag.
	Clock clock.WithTicker
}

// The values of --registration.
const (
	registrationOpen     = "open"
	registrationApproval = "approval"
	registrationClosed   = "closed"
)

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		DataDir:               ".kedge",
		ListenAddress:         "127.0.0.1:9443",
		RootWorkspace:         "root:kedge",
		LeaderElect:           true,
		KCPPort:               6443,
		EtcdClientPort:        2379,
		EtcdPeerPort:          2380,
		DefaultOrgQuota:       10,
		DefaultWorkspaceQuota: 50,
		DeletionGrace:         720 * time.Hour,
		Registration:          registrationOpen,
		PersonalOrgs:          true,
		PersonalOrgRole:       v1alpha1.RoleAdmin,
		CreateTimeout:         10 * time.Second,
		DrainTimeout:          20 * time.Second,
		MetricsListenAddress:  "127.0.0.1:9464",
		LogFormat:             "console",
		LogLevel:              "info",
		FollowTimeout:         5 * time.Second,
		Clock:                 clock.RealClock{},
	}
}

// AddFlags adds the flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Folder for what the hub keeps: its certificates in tls/ and, embedded, kcp and etcd in kcp/.")
	fs.StringVar(&o.ListenAddress, "listen-address", o.ListenAddress, "Address and port on which the hub serves HTTPS.")
	fs.StringVar(&o.ExternalURL, "external-url", o.ExternalURL, "The https URL under which clients reach the hub; it goes into kubeconfigs. Default: https://{listen-address}.")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "PEM certificate chain to serve, instead of one signed by the hub's own CA. Needs --tls-key-file and --tls-ca-file.")
	fs.StringVar(&o.TLSKeyFile, "tls-key-file", o.TLSKeyFile, "PEM private key of --tls-cert-file.")
	fs.StringVar(&o.TLSCAFile, "tls-ca-file", o.TLSCAFile, "PEM certificates that clients are told to trust; they go into kubeconfigs.")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile, "CSV of static tokens, token,username,uid,\"group1,group2\", for development and break-glass. The embedded kcp gets it too; an external one must be given the same file.")
	fs.StringSliceVar(&o.AdminUsers, "admin-user", o.AdminUsers, "Name of a User (metadata.name) who is a platform admin; may be repeated. One who is in --token-file is let in whatever --registration says.")
	fs.StringSliceVar(&o.AdminGroups, "admin-group", o.AdminGroups, "Group whose members are platform admins, as the credential names it; may be repeated. They are let in whatever --registration says.")
	fs.StringVar(&o.RootWorkspace, "root-workspace", o.RootWorkspace, "Path of the workspace below which the hub makes its tree.")
	fs.StringVar(&o.KCPKubeconfig, "kcp-kubeconfig", o.KCPKubeconfig, "Kubeconfig of an admin of an external kcp. Without it the hub runs a kcp of its own.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Let one replica of all that share the kcp of --kcp-kubeconfig run the controllers, under a Lease in the root workspace. Only a hub that is alone for sure may do without. The embedded kcp has one hub anyway.")
	fs.IntVar(&o.KCPPort, "kcp-port", o.KCPPort, "Port of the embedded kcp on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.EtcdClientPort, "etcd-client-port", o.EtcdClientPort, "Client port of the embedded etcd on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.EtcdPeerPort, "etcd-peer-port", o.EtcdPeerPort, "Peer port of the embedded etcd on 127.0.0.1; 0 chooses a free one.")
	fs.IntVar(&o.DefaultOrgQuota, "default-org-quota", o.DefaultOrgQuota, "How many organizations a person may create.")
	fs.IntVar(&o.DefaultWorkspaceQuota, "default-workspace-quota", o.DefaultWorkspaceQuota, "How many workspaces an organization may hold.")
	fs.DurationVar(&o.DeletionGrace, "deletion-grace", o.DeletionGrace, "How long something that was deleted can be undeleted.")
	fs.StringVar(&o.Registration, "registration", o.Registration, "Who may join: open for everybody whose token is good, approval for those whom a platform admin approves, closed for nobody new. Who was rejected stays out.")
	fs.BoolVar(&o.PersonalOrgs, "personal-orgs", o.PersonalOrgs, "Make an organization of their own for everybody who joins.")
	fs.StringVar((*string)(&o.PersonalOrgRole), "personal-org-role", string(o.PersonalOrgRole), "What people are in their own organization: admin or member.")
	fs.StringVar(&o.AuditLogFile, "audit-log-file", o.AuditLogFile, "File to which who changed what is appended, a JSON object a line. Without it that goes to the log.")
	fs.StringVar(&o.WorkspaceTemplate, "workspace-template", o.WorkspaceTemplate, "Folder of manifests (.yaml, .yml, .json) that every workspace is to hold: APIBindings with the claims that they accept, and further objects. See config/example-template/workspace. Without it nothing is bound.")
	fs.DurationVar(&o.CreateTimeout, "create-timeout", o.CreateTimeout, "How long a create waits until the object is ready before it answers 202.")
	fs.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout, "How long open requests may go on after SIGTERM.")
	fs.StringVar(&o.MetricsListenAddress, "metrics-listen-address", o.MetricsListenAddress, "Address and port on which /metrics and the details of /readyz are served over HTTP, without authentication; empty for nowhere.")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "console or json.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info, warn or error. kcp's and client-go's own logs are shown at debug.")
}

// Config is a valid configuration. Only Complete makes one.
type Config struct{ completed }

type completed struct {
	Options
	Tree tenancy.Tree
	// Embedded says that the hub runs a kcp of its own.
	Embedded bool
	// Template is what is in the folder WorkspaceTemplate.
	Template []*unstructured.Unstructured
}

// Complete checks the options and fills in what follows from them. Its error
// names every bad flag and what to do about it.
func (o Options) Complete() (Config, error) {
	var bad []error
	fail := func(flag, format string, args ...any) {
		bad = append(bad, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
	}
	tree, err := tenancy.NewTree(o.RootWorkspace)
	if err != nil {
		fail("root-workspace", "%v", err)
	}
	if o.DataDir == "" {
		fail("data-dir", "must name a folder")
	} else if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		fail("data-dir", "%v", err)
	}
	host, port, err := net.SplitHostPort(o.ListenAddress)
	if err != nil || !validPort(port, false) {
		fail("listen-address", "%q is not address:port, such as 127.0.0.1:9443", o.ListenAddress)
	}
	if o.ExternalURL == "" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			fail("external-url", "is needed where --listen-address is every address of the machine")
		}
		o.ExternalURL = "https://" + net.JoinHostPort(host, port)
	}
	if u, err := url.Parse(o.ExternalURL); err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		fail("external-url", "%q is not an https URL without a path, such as https://hub.example.com", o.ExternalURL)
	}
	o.ExternalURL = strings.TrimSuffix(o.ExternalURL, "/")
	given := 0
	for flag, file := range map[string]string{"tls-cert-file": o.TLSCertFile, "tls-key-file": o.TLSKeyFile, "tls-ca-file": o.TLSCAFile} {
		if file != "" {
			given++
			readable(flag, file, fail)
		}
	}
	if given != 0 && given != 3 {
		fail("tls-cert-file", "--tls-cert-file, --tls-key-file and --tls-ca-file are given together or not at all")
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
			fail(flag, "%d is negative; give how many are allowed", n)
		}
	}
	for flag, d := range map[string]time.Duration{"deletion-grace": o.DeletionGrace, "create-timeout": o.CreateTimeout, "drain-timeout": o.DrainTimeout} {
		if d <= 0 {
			fail(flag, "%s is not a positive duration, such as 10s", d)
		}
	}
	if !slices.Contains([]string{registrationOpen, registrationApproval, registrationClosed}, o.Registration) {
		fail("registration", "%q is not open, approval or closed", o.Registration)
	}
	if o.PersonalOrgRole != v1alpha1.RoleAdmin && o.PersonalOrgRole != v1alpha1.RoleMember {
		fail("personal-org-role", "%q is not admin or member", o.PersonalOrgRole)
	}
	if o.MetricsListenAddress != "" {
		if _, port, err := net.SplitHostPort(o.MetricsListenAddress); err != nil || !validPort(port, true) {
			fail("metrics-listen-address", "%q is not address:port, such as 127.0.0.1:9464", o.MetricsListenAddress)
		}
	}
	var manifests []*unstructured.Unstructured
	if o.WorkspaceTemplate != "" {
		if manifests, err = template.Load(o.WorkspaceTemplate); err != nil {
			fail("workspace-template", "%v", err)
		}
	}
	if err := errors.Join(bad...); err != nil {
		return Config{}, err
	}
	return Config{completed{Options: o, Tree: tree, Embedded: o.KCPKubeconfig == "", Template: manifests}}, nil
}

func validPort(port string, zero bool) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (n > 0 || zero)
}

func readable(flag, file string, fail func(flag, format string, args ...any)) {
	f, err := os.Open(file)
	if err != nil {
		fail(flag, "%v; name a file that the hub can read", err)
		return
	}
	_ = f.Close()
}
