package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// chosenPorts are the ports that were chosen for a directory, by flag.
type chosenPorts map[string]int

const portsFile = "ports.json"

// choosePorts sets the ports that are 0, to those of the last start if there was one. The
// error for a port in use names the hub's flag.
func choosePorts(o *Options) error {
	file := filepath.Join(o.Dir, portsFile)
	chosen := chosenPorts{}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &chosen)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the ports that were chosen before: %w; remove %s to choose anew", err, file)
	}
	for _, p := range []struct {
		flag string
		port *int
	}{{"kcp-port", &o.Port}, {"etcd-client-port", &o.EtcdClientPort}, {"etcd-peer-port", &o.EtcdPeerPort}} {
		want := *p.port
		if want == 0 {
			want = chosen[p.flag]
		}
		port, err := freePort(want)
		if err != nil {
			return fmt.Errorf("--%s: port %d on %s is taken: stop what listens there, or give another port (0 chooses a free one)", p.flag, want, host)
		}
		*p.port = port
		chosen[p.flag] = port
	}
	if raw, err = json.Marshal(chosen); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

func freePort(port int) (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
