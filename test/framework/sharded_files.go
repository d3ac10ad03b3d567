package framework

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/kcp-dev/sdk/testing/third_party/library-go/crypto"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// HubUser is a user of a sharded kcp that is not an admin of it.
const HubUser = "kedge-hub"

// certificateDays is the life of the certificates of a sharded kcp.
const certificateDays = 2

// clientsOfShards are the identities of a sharded kcp, by the name of their client certificate.
func clientsOfShards() map[string]user.Info {
	return map[string]user.Info{
		"kcp-admin":                      &user.DefaultInfo{Name: "kcp-admin", Groups: []string{"system:kcp:admin"}},
		HubUser:                          &user.DefaultInfo{Name: HubUser},
		"shard-admin":                    &user.DefaultInfo{Name: "shard-admin", Groups: []string{user.SystemPrivilegedGroup}},
		"logical-cluster-admin":          &user.DefaultInfo{Name: "logical-cluster-admin", Groups: []string{"system:kcp:logical-cluster-admin"}},
		"external-logical-cluster-admin": &user.DefaultInfo{Name: "external-logical-cluster-admin", Groups: []string{"system:kcp:external-logical-cluster-admin"}},
	}
}

// file is the path of a file of the kcp.
func (s *ShardedKCP) file(name string) string { return filepath.Join(s.Dir, name) }

func (s *ShardedKCP) ca(name string) (*crypto.CA, error) {
	ca, _, err := crypto.EnsureCA(s.file(name+".crt"), s.file(name+".key"), s.file(name+".serial"), "kedge test "+name, certificateDays)
	return ca, err
}

// writeFiles writes the certificates and kubeconfigs of all components.
func (s *ShardedKCP) writeFiles() error {
	serving, err := s.ca("serving-ca")
	if err != nil {
		return err
	}
	if _, err := serving.MakeAndWriteServerCert(s.file("serving.crt"), s.file("serving.key"), sets.New("127.0.0.1", "localhost"), certificateDays); err != nil {
		return err
	}
	clients, err := s.ca("client-ca")
	if err != nil {
		return err
	}
	for name, info := range clientsOfShards() {
		if _, err := clients.MakeClientCertificate(s.file(name+".crt"), s.file(name+".key"), info, certificateDays); err != nil {
			return err
		}
	}
	headers, err := s.ca("requestheader-ca")
	if err != nil {
		return err
	}
	if _, err := headers.MakeClientCertificate(s.file("front-proxy.crt"), s.file("front-proxy.key"), &user.DefaultInfo{Name: "kcp-front-proxy"}, certificateDays); err != nil {
		return err
	}
	mapping, err := yaml.Marshal([]map[string]string{{
		// The URL of the shard is that of its Shard object.
		"path": "/clusters/", "backend": s.url(RootShard), "backend_server_ca": s.file("serving-ca.crt"),
		"proxy_client_cert": s.file("front-proxy.crt"), "proxy_client_key": s.file("front-proxy.key"),
	}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.file("mapping.yaml"), mapping, 0o600); err != nil {
		return err
	}
	for file, contexts := range map[string]map[string][2]string{
		// The contexts with their server and client certificate; base is the current one.
		"admin.kubeconfig":                          {"base": {s.url(frontProxy), "kcp-admin"}, "shard-base": {s.url(RootShard), "shard-admin"}},
		HubUser + ".kubeconfig":                     {"base": {s.url(frontProxy), HubUser}},
		"cache.kubeconfig":                          {"base": {s.url(cacheServer), "shard-admin"}},
		"root-shard.kubeconfig":                     {"base": {s.url(RootShard), "shard-admin"}, "shard-base": {s.url(RootShard), "shard-admin"}},
		"shards.kubeconfig":                         {"base": {"", "shard-admin"}},
		"logical-cluster-admin.kubeconfig":          {"base": {s.url(RootShard), "logical-cluster-admin"}},
		"external-logical-cluster-admin.kubeconfig": {"base": {s.url(frontProxy), "external-logical-cluster-admin"}},
	} {
		if err := s.writeKubeconfig(file, contexts); err != nil {
			return err
		}
	}
	return nil
}

func (s *ShardedKCP) writeKubeconfig(file string, contexts map[string][2]string) error {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "base"
	for name, c := range contexts {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: c[0], CertificateAuthority: s.file("serving-ca.crt")}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: s.file(c[1] + ".crt"), ClientKey: s.file(c[1] + ".key")}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	// client-go watches certificates in files with a goroutine that never ends.
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, s.file(file))
}

// serving are the flags that all components have.
func (s *ShardedKCP) serving(name string) []string {
	return []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(s.ports[name][0]),
		"--tls-cert-file=" + s.file("serving.crt"), "--tls-private-key-file=" + s.file("serving.key"),
		"--client-ca-file=" + s.file("client-ca.crt"),
	}
}

// fresh are the flags of a component that has no data yet: its folder and its etcd.
func (s *ShardedKCP) fresh(name string) []string {
	return []string{
		"--root-directory=" + s.file(name),
		"--embedded-etcd-client-port=" + strconv.Itoa(s.ports[name][1]), "--embedded-etcd-peer-port=" + strconv.Itoa(s.ports[name][2]),
	}
}

// headers has a component trust the front proxy.
func (s *ShardedKCP) headers() []string {
	return []string{
		"--requestheader-client-ca-file=" + s.file("requestheader-ca.crt"), "--requestheader-allowed-names=kcp-front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

// accountKey creates the key with which a shard signs tokens of ServiceAccounts. Each has its own.
func (s *ShardedKCP) accountKey(shard string) ([]string, error) {
	if _, err := s.ca("service-account-" + shard); err != nil {
		return nil, err
	}
	certificate, key := s.file("service-account-"+shard+".crt"), s.file("service-account-"+shard+".key")
	return []string{
		"--service-account-key-file=" + certificate, "--service-account-private-key-file=" + key, "--service-account-signing-key-file=" + key,
	}, nil
}

// flags are the command and the flags of a component.
func (s *ShardedKCP) flagsOf(name string) ([]string, error) {
	switch name {
	case cacheServer:
		return append(append([]string{"cache-server"}, s.fresh(name)...), s.serving(name)...), nil
	case frontProxy:
		return append(append(append([]string{"front-proxy"}, s.serving(name)...), s.headers()...),
			"--root-directory="+s.file(name), "--mapping-file="+s.file("mapping.yaml"),
			"--root-kubeconfig="+s.file("root-shard.kubeconfig"), "--shards-kubeconfig="+s.file("shards.kubeconfig"),
		), nil
	}
	flags := append(append([]string{"shard"}, s.serving(name)...), s.headers()...)
	flags = append(flags,
		"--shard-name="+name, "--shard-base-url="+s.url(name), "--shard-virtual-workspace-url="+s.url(name), "--shard-external-url="+s.url(frontProxy),
		"--shard-client-cert-file="+s.file("shard-admin.crt"), "--shard-client-key-file="+s.file("shard-admin.key"),
		"--shard-virtual-workspace-ca-file="+s.file("serving-ca.crt"),
		"--logical-cluster-admin-kubeconfig="+s.file("logical-cluster-admin.kubeconfig"),
		"--external-logical-cluster-admin-kubeconfig="+s.file("external-logical-cluster-admin.kubeconfig"),
		"--cache-kubeconfig="+s.file("cache.kubeconfig"),
	)
	if name == RootShard && s.grown != nil {
		return flags, nil
	}
	account, err := s.accountKey(name)
	if err != nil {
		return nil, err
	}
	flags = append(append(append(flags, s.fresh(name)...), account...),
		"--token-auth-file="+s.TokenFile, "--api-audiences=https://kcp.default.svc,kedge", "--enable-home-workspaces=false",
		"--batteries-included=", "--profiling=false",
	)
	if s.grown != nil {
		flags = append(flags, s.grown.Flags...)
	}
	if name != RootShard {
		flags = append(flags, "--root-shard-kubeconfig-file="+s.file("root-shard.kubeconfig"))
	}
	return flags, nil
}

// url is the base URL of a component.
func (s *ShardedKCP) url(name string) string {
	return fmt.Sprintf("https://127.0.0.1:%d", s.ports[name][0])
}
