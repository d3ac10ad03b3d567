package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChoosePorts_keepsThePortThatIsInTheDataOfKCP(t *testing.T) {
	t.Parallel()
	free := func() int {
		port, err := freePort(0)
		require.NoError(t, err)
		return port
	}
	first := Options{Dir: t.TempDir()}
	require.NoError(t, choosePorts(&first))
	require.NotZero(t, first.Port)
	other := first
	other.Port, other.EtcdClientPort = free(), free()
	require.NotEqual(t, first.Port, other.Port)
	require.NoError(t, choosePorts(&other), "nothing is stored yet")

	require.NoError(t, os.Mkdir(filepath.Join(first.Dir, etcdDir), 0o700))
	require.ErrorContains(t, choosePorts(&first), "--kcp-port: the data in "+first.Dir+" is of a kcp at port")
	again := Options{Dir: first.Dir, EtcdClientPort: free()}
	require.NoError(t, choosePorts(&again), "the ports of etcd are in no data")
	require.Equal(t, other.Port, again.Port)
	named := Options{Dir: first.Dir, Port: other.Port}
	require.NoError(t, choosePorts(&named))
}
