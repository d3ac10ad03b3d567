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

// A start that cannot write the ports, or that the power ends, leaves those of the start before.
func TestChoosePorts_leavesWhatIsRight(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	require.NoError(t, choosePorts(&o))
	file := filepath.Join(o.Dir, portsFile)
	before, err := os.Stat(file)
	require.NoError(t, err)
	again := Options{Dir: o.Dir}
	require.NoError(t, choosePorts(&again))
	require.Equal(t, o, again)
	after, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()), "nothing is written")

	// No file can be made beside it.
	require.NoError(t, os.MkdirAll(filepath.Join(file+".new", "taken"), 0o700))
	other := Options{Dir: o.Dir}
	other.EtcdClientPort, err = freePort(0)
	require.NoError(t, err)
	require.Error(t, choosePorts(&other))
	kept, err := readPorts(o.Dir)
	require.NoError(t, err)
	require.Equal(t, o.EtcdClientPort, kept[etcdClientPortFlag])
	require.NoError(t, os.RemoveAll(file+".new"))
	require.NoError(t, choosePorts(&other))
	kept, err = readPorts(o.Dir)
	require.NoError(t, err)
	require.Equal(t, other.EtcdClientPort, kept[etcdClientPortFlag])

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, choosePorts(&Options{Dir: o.Dir}), "with the port of kcp in "+filepath.Join(o.Dir, "admin.kubeconfig"))
}
