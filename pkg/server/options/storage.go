package options

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The smallest quota is what an empty hub needs, and some room. The largest is that of a database that
// etcd can still copy in minutes.
const minEtcdQuota, maxEtcdQuota = 64 << 20, 64 << 30

// StorageOptions are the flags of the store.
type StorageOptions struct {
	// EtcdQuota (--etcd-quota) is the size to which the database of the embedded etcd may grow, as a
	// quantity of Kubernetes. Default 8Gi.
	EtcdQuota string

	// etcdQuota is EtcdQuota in bytes.
	etcdQuota int64
}

func newStorageOptions() StorageOptions { return StorageOptions{EtcdQuota: "8Gi"} }

func (o *StorageOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.EtcdQuota, "etcd-quota", o.EtcdQuota, "Size to which the database of the embedded etcd may grow, such as 8Gi. From 80% of it on nothing new is stored, and from 95% on only what takes rights or space away is written.")
}

func (o *StorageOptions) complete(fail func(flag, format string, args ...any)) {
	quantity, err := resource.ParseQuantity(o.EtcdQuota)
	if o.etcdQuota = quantity.Value(); err != nil || o.etcdQuota < minEtcdQuota || o.etcdQuota > maxEtcdQuota {
		fail("etcd-quota", "%q is not a size between 64Mi and 64Gi, such as 8Gi", o.EtcdQuota)
	}
}
