package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/test/framework"
)

// stage is the hubs on which floods are measured.
type stage struct {
	hubs []*hubProcess
	// kcp is the folder of the kcp behind the hubs, which has its kubeconfig and etcd.
	kcp  string
	etcd *clientv3.Client
	// ends ends what runs, the last first.
	ends []func()
}

// startStage starts a hub with an embedded kcp, or several hubs before one kcp, and an identity provider.
func startStage(dir string, replicas int, limits []string) (s *stage, err error) {
	s = &stage{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, name := range []string{"dex", "kcp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	dex, err := framework.StartDex(filepath.Join(dir, "dex"), framework.DexOptions{})
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, dex.Kill)
	flags := append([]string{
		"--personal-orgs=false", "--trusted-proxy-cidr", "127.0.0.1/32",
		"--oidc-issuer-url", dex.Issuer, "--oidc-ca-file", dex.CAFile,
		"--oidc-client-id", framework.HubClient, "--oidc-client-secret-file", dex.SecretFile,
	}, limits...)
	s.kcp = filepath.Join(dir, "hub-0", "kcp")
	if replicas > 1 {
		s.kcp = filepath.Join(dir, "kcp")
		kcp, err := framework.StartKCP(s.kcp, dex)
		if err != nil {
			return nil, err
		}
		s.ends = append(s.ends, kcp.Kill)
		flags = append(flags, "--kcp-kubeconfig", kcp.Kubeconfig, "--token-file", kcp.TokenFile, "--policy-enforcement-window", "0s")
	}
	for i := range replicas {
		var port int
		if err := checked(func(t testing.TB) { port = dex.HubPort(t) }); err != nil {
			return nil, err
		}
		h, err := startHubAt(filepath.Join(dir, fmt.Sprintf("hub-%d", i)), port, flags...)
		if err != nil {
			return nil, err
		}
		s.hubs, s.ends = append(s.hubs, h), append(s.ends, h.Kill)
	}
	s.etcd, err = etcdIn(s.kcp)
	if err == nil {
		s.ends = append(s.ends, func() { _ = s.etcd.Close() })
	}
	return s, err
}

func (s *stage) stop() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
}

// etcdIn returns a client of the etcd of the kcp in a folder.
func etcdIn(kcp string) (*clientv3.Client, error) {
	raw, err := os.ReadFile(filepath.Join(kcp, "ports.json"))
	if err != nil {
		return nil, err
	}
	ports := map[string]int{}
	if err := json.Unmarshal(raw, &ports); err != nil {
		return nil, err
	}
	secrets := filepath.Join(kcp, "etcd-server", "secrets")
	config, err := transport.TLSInfo{
		CertFile: filepath.Join(secrets, "client", "cert.pem"), KeyFile: filepath.Join(secrets, "client", "key.pem"),
		TrustedCAFile: filepath.Join(secrets, "ca", "cert.pem"),
	}.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprintf("https://localhost:%d", ports["etcd-client-port"])}, TLS: config, Logger: zap.NewNop(),
	})
}

// signUp lets a person sign up.
func (s *stage) signUp(name string) error {
	for _, h := range s.hubs {
		if _, err := expect(h, framework.Call{As: name, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// newTenant makes an Organization and a Workspace of a person, who can work in it through every hub.
func (s *stage) newTenant(as string) (org, ws tenant, err error) {
	if org, err = create(s.hubs[0], as, "/api/orgs", ""); err != nil {
		return org, ws, err
	}
	if ws, err = create(s.hubs[0], as, "/api/orgs/"+org.UUID+"/workspaces", org.UUID); err != nil {
		return org, ws, err
	}
	for _, h := range s.hubs {
		if err := framework.Wait(framework.Long, func() error {
			_, err := expect(h, framework.Call{As: as, Method: http.MethodGet, Path: configMaps(ws.ClusterID) + "?limit=1"}, http.StatusOK)
			return err
		}); err != nil {
			return org, ws, err
		}
	}
	return org, ws, nil
}

// footprint measures what the hubs use.
func (s *stage) footprint() (f footprint, err error) {
	for _, h := range s.hubs {
		now, err := rss(h.PID())
		if err != nil {
			return f, err
		}
		peak, err := processMemory(h.PID(), "VmHWM:")
		if err != nil {
			return f, err
		}
		f.rss, f.peak = f.rss+now, f.peak+peak
	}
	ctx, cancel := context.WithTimeout(context.Background(), framework.Long)
	defer cancel()
	status, err := s.etcd.Status(ctx, s.etcd.Endpoints()[0])
	if err != nil {
		return f, err
	}
	f.used, f.file = status.DbSizeInUse, status.DbSize
	return f, nil
}

// ticks is the time of all processors since the start of the machine, in ticks of the kernel.
type ticks struct{ all, idle int64 }

// readTicks reads /proc/stat. It returns nothing where that is missing.
func readTicks() (t ticks) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	return parseTicks(string(raw))
}

// parseTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func parseTicks(stat string) (t ticks) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		t.all += n
		if i == 4 || i == 5 {
			t.idle += n
		}
	}
	return t
}

// busySince is the share of the time since before in which the processors were in use.
func (t ticks) busySince(before ticks) float64 {
	if t.all == before.all {
		return 0
	}
	return 1 - float64(t.idle-before.idle)/float64(t.all-before.all)
}

// resetPeaks forgets the largest memory of the hubs.
func (s *stage) resetPeaks() (err error) {
	for _, h := range s.hubs {
		err = errors.Join(err, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", h.PID()), []byte("5"), 0))
	}
	return err
}
