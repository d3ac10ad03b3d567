package server

import (
	"context"
	"net"
	"os"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// The states of sd_notify(3).
const (
	stateReady    = "READY=1"
	stateStopping = "STOPPING=1"
)

// notify tells the service manager a state, if it has asked for states with NOTIFY_SOCKET. A hub
// that cannot tell serves nevertheless.
func notify(ctx context.Context, state string) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	// The dialer makes an address that begins with @ an abstract one.
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), "unixgram", address)
	if err == nil {
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		log.From(ctx).Warn("the service manager cannot be told", zap.String("state", state), zap.Error(err))
	}
}
