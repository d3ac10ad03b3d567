package options

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// The smallest quota is what an empty hub needs, and some room. The largest is that of a database that
// etcd can still copy in minutes.
const minEtcdQuota, maxEtcdQuota = 64 << 20, 64 << 30

const mebibyte = 1 << 20

// StorageOptions are the flags of the store.
type StorageOptions struct {
	// EtcdQuota (--etcd-quota) is the size to which the database of the embedded etcd may grow, as a
	// quantity of Kubernetes. Default 8Gi.
	EtcdQuota string
	// WorkspaceObjects (--workspace-objects) is the number of objects that a Workspace can store. 0
	// means no limit, here and below. Default 20000.
	WorkspaceObjects int64
	// WorkspaceBytes (--workspace-bytes) is the size of all objects of a Workspace, as a quantity of
	// Kubernetes. Default 256Mi.
	WorkspaceBytes string
	// OrgBytes (--org-bytes) is the size of all objects in the Workspaces of an Organization, as a
	// quantity of Kubernetes. Default 2Gi.
	OrgBytes string
	// WorkspaceDefinitions (--workspace-crds) is the number of CustomResourceDefinitions that a
	// Workspace can have. Default 200.
	WorkspaceDefinitions int64
	// WorkspaceBindings (--workspace-apibindings) is the number of APIBindings that a Workspace can
	// have. Default 100.
	WorkspaceBindings int64
	// WorkspaceRoles (--workspace-roles) is the number of Roles, ClusterRoles and Namespaces together that a
	// Workspace can have. The default of 300 keeps what a replica holds of them below 2 MiB.
	WorkspaceRoles int64

	// etcdQuota is EtcdQuota in bytes, and limits are those of tenants.
	etcdQuota int64
	limits    v1alpha1.StorageLimits
}

func newStorageOptions() StorageOptions {
	return StorageOptions{
		EtcdQuota: "8Gi", WorkspaceObjects: 20_000, WorkspaceBytes: "256Mi", OrgBytes: "2Gi",
		WorkspaceDefinitions: 200, WorkspaceBindings: 100, WorkspaceRoles: 300,
	}
}

func (o *StorageOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.EtcdQuota, "etcd-quota", o.EtcdQuota, "Size to which the database of the embedded etcd may grow, such as 8Gi. From 80% of it on nothing new is stored, and from 95% on only what takes rights or space away is written.")
	const none = " 0 disables the limit."
	fs.Int64Var(&o.WorkspaceObjects, "workspace-objects", o.WorkspaceObjects, "Number of objects that a workspace can store, without those of the hub."+none)
	fs.StringVar(&o.WorkspaceBytes, "workspace-bytes", o.WorkspaceBytes, "Size of all objects of a workspace, such as 256Mi."+none)
	fs.StringVar(&o.OrgBytes, "org-bytes", o.OrgBytes, "Size of all objects in the workspaces of an organization, such as 2Gi."+none)
	fs.Int64Var(&o.WorkspaceDefinitions, "workspace-crds", o.WorkspaceDefinitions, "Number of CustomResourceDefinitions that a workspace can have."+none)
	fs.Int64Var(&o.WorkspaceBindings, "workspace-apibindings", o.WorkspaceBindings, "Number of APIBindings that a workspace can have, without those of the hub."+none)
	fs.Int64Var(&o.WorkspaceRoles, "workspace-roles", o.WorkspaceRoles, "Number of Roles, ClusterRoles and Namespaces together that a workspace can have, without those of the hub. Every replica of the hub holds them."+none)
}

func (o *StorageOptions) complete(fail func(flag, format string, args ...any)) {
	quantity, err := resource.ParseQuantity(o.EtcdQuota)
	if o.etcdQuota = quantity.Value(); err != nil || o.etcdQuota < minEtcdQuota || o.etcdQuota > maxEtcdQuota {
		fail("etcd-quota", "%q is not a size between 64Mi and 64Gi, such as 8Gi", o.EtcdQuota)
	}
	o.limits = v1alpha1.StorageLimits{
		WorkspaceObjects: o.WorkspaceObjects, WorkspaceCRDs: o.WorkspaceDefinitions, WorkspaceAPIBindings: o.WorkspaceBindings, WorkspaceRoles: o.WorkspaceRoles,
	}
	for flag, n := range map[string]int64{
		"workspace-objects": o.WorkspaceObjects, "workspace-crds": o.WorkspaceDefinitions, "workspace-apibindings": o.WorkspaceBindings,
		"workspace-roles": o.WorkspaceRoles,
	} {
		if n < 0 {
			fail(flag, "%d is negative; give a number, or 0 for no limit", n)
		}
	}
	parseSize(fail, "workspace-bytes", o.WorkspaceBytes, &o.limits.WorkspaceBytes)
	parseSize(fail, "org-bytes", o.OrgBytes, &o.limits.Bytes)
}

// parseSize parses a limit in bytes, which is a quantity of Kubernetes. 0 means no limit.
func parseSize(fail func(flag, format string, args ...any), flag, text string, bytes *int64) {
	quantity, err := resource.ParseQuantity(text)
	if *bytes = quantity.Value(); err != nil || *bytes != 0 && *bytes < mebibyte {
		fail(flag, "%q is not a size of at least 1Mi, such as 256Mi; 0 means no limit", text)
	}
}

// StorageLimits returns the limits of Organizations without their own.
func (c Config) StorageLimits() v1alpha1.StorageLimits { return c.Storage.limits }
