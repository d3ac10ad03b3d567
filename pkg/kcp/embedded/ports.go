package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

// chosenPorts are the ports that were chosen for a directory, by flag.
type chosenPorts map[string]int

const portsFile = "ports.json"

// The flags of the hub for the ports.
const portFlag, etcdClientPortFlag, etcdPeerPortFlag = "kcp-port", "etcd-client-port", "etcd-peer-port"

// readPorts returns the ports of the last start. It fails with fs.ErrNotExist if there was none.
func readPorts(dir string) (chosenPorts, error) {
	file := filepath.Join(dir, portsFile)
	chosen := chosenPorts{}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &chosen)
	}
	if err != nil {
		return chosen, fmt.Errorf("read the ports of the last start: %w; write {%q: PORT} into %s, with the port of kcp in %s", err, portFlag, file,
			filepath.Join(dir, "admin.kubeconfig"))
	}
	return chosen, nil
}

// lastPorts are those of kcp and etcd at the last start.
func lastPorts(dir string) (kcp, etcdClient, etcdPeer int, err error) {
	chosen, err := readPorts(dir)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, flag := range []string{portFlag, etcdClientPortFlag, etcdPeerPortFlag} {
		if chosen[flag] == 0 {
			return 0, 0, 0, fmt.Errorf("%s lacks %s; start the hub until it is ready, and stop it", filepath.Join(dir, portsFile), flag)
		}
	}
	return chosen[portFlag], chosen[etcdClientPortFlag], chosen[etcdPeerPortFlag], nil
}

// choosePorts sets the ports that are 0, to those of the last start if there was one. The
// error for a port in use, or for another port of kcp than its data has, names the hub's flag.
func choosePorts(o *Options) error {
	chosen, err := readPorts(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := maps.Clone(chosen)
	for _, p := range []struct {
		flag string
		port *int
	}{{portFlag, &o.Port}, {etcdClientPortFlag, &o.EtcdClientPort}, {etcdPeerPortFlag, &o.EtcdPeerPort}} {
		want := *p.port
		last := chosen[p.flag]
		if want == 0 {
			want = last
		}
		if p.flag == portFlag && last != 0 && want != last && hasData(o.Dir) {
			// kcp does not change the URLs of endpoints that it has published, and the hub would wait for them.
			return fmt.Errorf("--%s: the data in %s is of a kcp at port %d, whose URLs it has: give that port, or 0, instead of %d", p.flag, o.Dir, last, want)
		}
		port, err := freePort(want)
		if err != nil {
			return fmt.Errorf("--%s: port %d on %s is taken: stop what listens there, or give another port (0 chooses a free one)", p.flag, want, host)
		}
		*p.port = port
		chosen[p.flag] = port
	}
	if maps.Equal(chosen, before) {
		return nil
	}
	raw, err := json.Marshal(chosen)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(o.Dir, portsFile), raw, 0o600)
}

// hasData reports whether a kcp has stored something.
func hasData(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, etcdDir))
	return err == nil
}

func freePort(port int) (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
