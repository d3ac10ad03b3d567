package leader

import (
	"context"
	"crypto/rand"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// LeaseName and LeaseNamespace name the Lease in the root workspace of the hub.
const (
	LeaseName      = "kedge-hub"
	LeaseNamespace = metav1.NamespaceDefault
)

// NewLease returns a lock on the Lease in the logical cluster of the root workspace, with a
// unique identity. The clients must not be fenced.
func NewLease(clients *kcp.Clients, cluster string) resourcelock.Interface {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &lease{clients: clients, cluster: cluster, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: LeaseNamespace, Name: LeaseName},
		Client:     clients.Leases(cluster),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + strings.ToLower(rand.Text()[:12])},
	}}
}

type lease struct {
	*resourcelock.LeaseLock
	clients *kcp.Clients
	cluster string
}

// Create also creates the namespace if it is missing: kcp creates it shortly after the
// workspace.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	if !apierrors.IsNotFound(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: LeaseNamespace}}
	if _, err := l.clients.Namespaces(l.cluster).Create(ctx, namespace, metav1.CreateOptions{FieldManager: kcp.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return l.LeaseLock.Create(ctx, record)
}
