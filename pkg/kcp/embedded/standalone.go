package embedded

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	serveroptions "github.com/kcp-dev/kcp/pkg/server/options"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/faroshq/kedge-hub/pkg/config"
)

// etcdName is the name of the member, which the embedded etcd leaves at etcd's default.
const etcdName = "default"

// Standalone returns the command lines of an etcd and a kcp of the linked versions that serve the data in the folder of
// an embedded kcp without a hub. The ports are those of the last start, and the ports of o are ignored. tokenFile is the
// file of static tokens, or empty. Standalone starts and writes nothing. It fails if a process works with the data, if
// the folder has not all that a start makes, and if kcp would accept the tokens of other issuers than at the last start.
func Standalone(o Options, tokenFile string) (etcd, kcp []string, err error) {
	secrets := filepath.Join(o.Dir, etcdDir, secretsDir)
	ca, peer, client := filepath.Join(secrets, "ca"), filepath.Join(secrets, "peer"), filepath.Join(secrets, "client")
	for _, file := range []string{
		filepath.Join(o.Dir, portsFile), filepath.Join(o.Dir, lockFile), filepath.Join(o.Dir, databaseFile),
		filepath.Join(o.Dir, "admin.kubeconfig"), filepath.Join(o.Dir, "sa.key"),
		certOf(ca), certOf(peer), keyOf(peer), certOf(client), keyOf(client),
	} {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("there is no %s; start the hub until it is ready, and stop it", file)
		} else if err != nil {
			return nil, nil, err
		}
	}
	if o.Port, o.EtcdClientPort, o.EtcdPeerPort, err = lastPorts(o.Dir); err != nil {
		return nil, nil, err
	}
	o.EtcdQuota = cmp.Or(o.EtcdQuota, defaultQuota)
	if err := unused(o.Dir); err != nil {
		return nil, nil, err
	}
	if err := sameIssuers(o); err != nil {
		return nil, nil, err
	}
	clientURL, peerURL := "https://localhost:"+strconv.Itoa(o.EtcdClientPort), "https://localhost:"+strconv.Itoa(o.EtcdPeerPort)
	etcd = []string{
		"etcd", "--name=" + etcdName, "--data-dir=" + filepath.Join(o.Dir, etcdDir),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=" + etcdName + "=" + peerURL,
		"--client-cert-auth=true", "--trusted-ca-file=" + certOf(ca), "--cert-file=" + certOf(peer), "--key-file=" + keyOf(peer),
		"--peer-client-cert-auth=true", "--peer-trusted-ca-file=" + certOf(ca),
		"--peer-cert-file=" + certOf(peer), "--peer-key-file=" + keyOf(peer),
		"--quota-backend-bytes=" + strconv.FormatInt(o.EtcdQuota+etcdReserve, 10),
	}

	wanted := configured(o)
	wanted.EmbeddedEtcd = serveroptions.NewOptions(o.Dir).EmbeddedEtcd
	transport := &wanted.GenericControlPlane.Etcd.StorageConfig.Transport
	transport.ServerList, transport.TrustedCAFile = []string{clientURL}, certOf(ca)
	transport.CertFile, transport.KeyFile = certOf(client), keyOf(client)
	wanted.GenericControlPlane.Authentication.TokenFile.TokenFile = tokenFile
	kcp = append([]string{"kcp", "start", "--root-directory=" + o.Dir}, changedFlags(serveroptions.NewOptions(o.Dir), wanted)...)
	return etcd, kcp, nil
}

func certOf(dir string) string { return filepath.Join(dir, "cert.pem") }

func keyOf(dir string) string { return filepath.Join(dir, "key.pem") }

// changedFlags returns the flags of kcp that make its default options the wanted ones.
func changedFlags(defaults, wanted *serveroptions.Options) (args []string) {
	before := flagsOf(defaults)
	flagsOf(wanted).VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != before.Lookup(f.Name).Value.String() {
			args = append(args, config.Arguments(f)...)
		}
	})
	return args
}

func flagsOf(o *serveroptions.Options) *pflag.FlagSet {
	var sets cliflag.NamedFlagSets
	o.AddFlags(&sets)
	all := pflag.NewFlagSet("kcp", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	return all
}

// sameIssuers returns an error if the options name other issuers than those that kcp accepted at its last start.
func sameIssuers(o Options) error {
	path := filepath.Join(o.Dir, authenticationFile)
	written, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && len(o.JWT) == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	wanted, err := authentication(o.JWT)
	if err != nil {
		return err
	}
	if !bytes.Equal(wanted, written) {
		return fmt.Errorf("%s, from the last start of the hub, and the --oidc-* flags name different identity providers; "+
			"give all flags of the hub, or start it once with the new ones", path)
	}
	return nil
}
