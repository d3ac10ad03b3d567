// Command kcpserver runs the embedded kcp in a process of its own, for tests and
// benchmarks. The race detector can then be on in the hub and off in kcp, and a bare kcp
// can be measured beside the hub. The commands shard, cache-server and front-proxy run the
// components of a kcp with several shards.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/kcp/embedded"
	"github.com/faroshq/kedge-hub/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if runComponent(ctx) {
		return
	}
	var o embedded.Options
	flag.StringVar(&o.Dir, "data-dir", "", "folder for kcp's data; a file named ready appears in it when kcp serves")
	flag.IntVar(&o.Port, "port", 0, "kcp's port")
	flag.IntVar(&o.EtcdClientPort, "etcd-client-port", 0, "etcd's client port")
	flag.IntVar(&o.EtcdPeerPort, "etcd-peer-port", 0, "etcd's peer port")
	tokens := flag.String("token-file", "", "CSV of static tokens")
	authentication := flag.String("authentication-config", "", "an AuthenticationConfiguration of kube-apiserver in JSON, with the issuers of people's tokens")
	skip := flag.Bool("skip-account-lookup", false, "accept tokens of ServiceAccounts that were deleted")
	flag.Parse()
	var changes []embedded.Change
	if *skip {
		changes = append(changes, embedded.SkipAccountLookup)
	}
	if err := run(ctx, o, *tokens, *authentication, changes...); err != nil {
		fmt.Fprintln(os.Stderr, "kcpserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o embedded.Options, tokens, authentication string, changes ...embedded.Change) (err error) {
	if tokens != "" {
		if o.Tokens, err = auth.LoadStaticTokens(tokens); err != nil {
			return err
		}
	}
	if authentication != "" {
		raw, err := os.ReadFile(authentication)
		if err != nil {
			return err
		}
		var c apiserverv1.AuthenticationConfiguration
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("--authentication-config: %w", err)
		}
		o.JWT = c.JWT
	}
	logger, err := log.New("console", "error", os.Stderr)
	if err != nil {
		return err
	}
	log.Bridge(logger)
	marker := filepath.Join(o.Dir, "ready")
	if err := os.RemoveAll(marker); err != nil {
		return err
	}
	s, err := embedded.New(o, changes...)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-s.Ready():
			if err := os.WriteFile(marker, nil, 0o600); err != nil {
				logger.Error("cannot say that kcp is ready", zap.Error(err))
			}
		}
	}()
	return s.Run(ctx)
}
