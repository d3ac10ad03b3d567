package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// etcdDir is the folder of etcd in that of kcp, as kcp chooses it.
const etcdDir = "etcd-server"

// secretsDir is the folder of the certificates of etcd and its clients in that of etcd.
const secretsDir = "secrets"

// patience is how long a defragmentation that is due waits for a snapshot.
const patience = 10 * time.Second

// errNeedsRoom is Unavailable: another snapshot begins when the defragmentation is done.
var errNeedsRoom error = errs.New(errs.Unavailable, "etcd is full and has to be defragmented; repeat this when that is done")

// copying keeps snapshots and defragmentations of etcd's database apart. A defragmentation waits for all who read
// the database while it holds the locks of etcd, so that nothing would be written until a snapshot has ended. Pages
// that a snapshot reads are not used again before it ends.
type copying struct {
	turn chan struct{}
	// running has the end of the snapshot that runs.
	running chan context.CancelCauseFunc
	// patience is how long a defragmentation waits before it ends a snapshot.
	patience time.Duration
}

func newCopying() *copying {
	return &copying{turn: make(chan struct{}, 1), running: make(chan context.CancelCauseFunc, 1), patience: patience}
}

// snapshot runs a snapshot when nothing else is under way.
func (c *copying) snapshot(ctx context.Context, do func(context.Context) error) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.running <- cancel
	defer func() { <-c.running }()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// defragment runs a defragmentation. It gives a snapshot some time to end.
func (c *copying) defragment(do func() error) error {
	timer := time.AfterFunc(c.patience, func() {
		select {
		case cancel := <-c.running:
			cancel(errNeedsRoom)
			c.running <- cancel
		default:
		}
	})
	defer timer.Stop()
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return do()
}

// etcdClient returns a client of the etcd that runs in dir.
func (s *Server) etcdClient(dir string) (*clientv3.Client, error) {
	secrets := filepath.Join(dir, secretsDir)
	client := filepath.Join(secrets, "client")
	info := transport.TLSInfo{
		CertFile: certOf(client), KeyFile: keyOf(client), TrustedCAFile: certOf(filepath.Join(secrets, "ca")),
	}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of etcd: %w", err)
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{etcdURL(s.options.EtcdClientPort).String()}, TLS: config,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return etcd, nil
}

// Snapshot calls write with a snapshot of etcd, which ends with its hash, and with the revision of etcd when it was
// asked for. It is made while kcp serves.
func (s *Server) Snapshot(ctx context.Context, write func(revision, size int64, r io.Reader) error) error {
	etcd, err := s.etcdClient(filepath.Join(s.options.Dir, etcdDir))
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }()
	return s.copying.snapshot(ctx, func(ctx context.Context) error {
		return snapshotOf(ctx, etcdserverpb.NewMaintenanceClient(etcd.ActiveConnection()), write)
	})
}

func snapshotOf(ctx context.Context, etcd etcdserverpb.MaintenanceClient, write func(revision, size int64, r io.Reader) error) error {
	// The end of the context ends the read transaction of etcd.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	status, err := etcd.Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return err
	}
	stream, err := etcd.Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r := &snapshotReader{stream: stream}
	_, _ = r.rest.Write(first.Blob)
	// etcd does not count the hash.
	return write(status.Header.Revision, int64(len(first.Blob))+int64(first.RemainingBytes)+sha256.Size, r) //nolint:gosec // the size of a file
}

// snapshotReader reads the stream of a snapshot.
type snapshotReader struct {
	stream etcdserverpb.Maintenance_SnapshotClient
	rest   bytes.Buffer
}

// Read implements io.Reader.
func (r *snapshotReader) Read(p []byte) (int, error) {
	for r.rest.Len() == 0 {
		next, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		_, _ = r.rest.Write(next.Blob)
	}
	return r.rest.Read(p)
}
