package server

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/stretchr/testify/require"
)

func TestNotify_tellsTheServiceManager(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer func() { _ = manager.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket)
	notify(t.Context(), daemon.SdNotifyReady)
	told := make([]byte, 100)
	n, err := manager.Read(told)
	require.NoError(t, err)
	require.Equal(t, "READY=1", string(told[:n]))
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	notify(t.Context(), daemon.SdNotifyStopping)
}
