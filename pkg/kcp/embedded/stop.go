package embedded

import (
	"context"
	"time"

	"github.com/kcp-dev/embeddedetcd"
	"k8s.io/apimachinery/pkg/util/wait"
)

// stopTimeout limits the time that the process waits for etcd to close its files.
const stopTimeout = 10 * time.Second

func awaitStopped(etcd *embeddedetcd.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return etcd.Stopped(), nil
	})
}
