package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kcp-dev/embeddedetcd"
	proxyoptions "github.com/kcp-dev/kcp/cmd/kcp-front-proxy/options"
	shardoptions "github.com/kcp-dev/kcp/cmd/kcp/options"
	cacheserver "github.com/kcp-dev/kcp/pkg/cache/server"
	cacheoptions "github.com/kcp-dev/kcp/pkg/cache/server/options"
	kcpfeatures "github.com/kcp-dev/kcp/pkg/features"
	"github.com/kcp-dev/kcp/pkg/proxy"
	"github.com/kcp-dev/kcp/pkg/server"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapiv1 "k8s.io/component-base/logs/api/v1"
)

// components are the processes of a kcp with several shards, by the name of their command. Each
// takes the flags of kcp's own program: kcp start, cache-server and kcp-front-proxy. One program
// has all three, because linking kcp takes most of the time of a build.
func components() map[string]func(ctx context.Context, args []string) error {
	return map[string]func(ctx context.Context, args []string) error{
		"shard": runShard, "cache-server": runCacheServer, "front-proxy": runFrontProxy,
	}
}

// rootDirectory is the value of --root-directory, from which defaults of other flags follow.
func rootDirectory(args []string) string {
	for _, arg := range slices.Backward(args) {
		if dir, ok := strings.CutPrefix(arg, "--root-directory="); ok {
			return dir
		}
	}
	return ".kcp"
}

func parse(name string, args []string, sets *cliflag.NamedFlagSets) error {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	return flags.Parse(args)
}

// logErrors has a component log its errors alone.
func logErrors(o *logs.Options) error {
	o.Verbosity = 0
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return logsapiv1.ValidateAndApply(o, kcpfeatures.DefaultFeatureGate)
}

// startEtcd starts the etcd of a component. It ends with the process, after the component.
func startEtcd(config embeddedetcd.CompletedConfig) error {
	if config.Config == nil {
		return nil
	}
	config.Config.LogLevel = "panic"
	return embeddedetcd.NewServer(config).Run(context.Background())
}

func runShard(ctx context.Context, args []string) error {
	o := shardoptions.NewOptions(rootDirectory(args))
	var sets cliflag.NamedFlagSets
	o.AddFlags(&sets)
	if err := parse("shard", args, &sets); err != nil {
		return err
	}
	if err := logErrors(o.Server.GenericControlPlane.Logs); err != nil {
		return err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return err
	}
	if err := utilerrors.NewAggregate(completed.Validate()); err != nil {
		return err
	}
	config, err := server.NewConfig(ctx, completed.Server)
	if err != nil {
		return err
	}
	// Each shard is one process. kcp assumes three by default and then delays every new CRD by
	// five seconds, so that the others can see it.
	config.ApiExtensions.ExtraConfig.MasterCount = 1
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	if err := startEtcd(completedConfig.EmbeddedEtcd); err != nil {
		return err
	}
	s, err := server.NewServer(completedConfig)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func runCacheServer(ctx context.Context, args []string) error {
	o := cacheoptions.NewOptions(rootDirectory(args))
	var sets cliflag.NamedFlagSets
	o.AddFlags(sets.FlagSet("cache-server"))
	sets.FlagSet("cache-server").String("root-directory", "", "Root directory.")
	if err := parse("cache-server", args, &sets); err != nil {
		return err
	}
	if err := logErrors(o.Logs); err != nil {
		return err
	}
	completed, err := o.Complete()
	if err != nil {
		return err
	}
	if err := utilerrors.NewAggregate(completed.Validate()); err != nil {
		return err
	}
	config, err := cacheserver.NewConfig(completed, nil)
	if err != nil {
		return err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	if err := startEtcd(completedConfig.EmbeddedEtcd); err != nil {
		return err
	}
	s, err := cacheserver.NewServer(completedConfig)
	if err != nil {
		return err
	}
	prepared, err := s.PrepareRun(ctx)
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

func runFrontProxy(ctx context.Context, args []string) error {
	o := proxyoptions.NewOptions()
	var sets cliflag.NamedFlagSets
	o.AddFlags(&sets)
	if err := parse("front-proxy", args, &sets); err != nil {
		return err
	}
	if err := logErrors(o.Logs); err != nil {
		return err
	}
	if err := o.Complete(); err != nil {
		return err
	}
	if err := utilerrors.NewAggregate(o.Validate()); err != nil {
		return err
	}
	config, err := proxy.NewConfig(ctx, o.Proxy)
	if err != nil {
		return err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	s, err := proxy.NewServer(ctx, completedConfig)
	if err != nil {
		return err
	}
	prepared, err := s.PrepareRun(ctx)
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

// runComponent runs the component that the first argument names, if it names one.
func runComponent(ctx context.Context) (ran bool) {
	if len(os.Args) < 2 {
		return false
	}
	run, ok := components()[os.Args[1]]
	if !ok {
		return false
	}
	if err := run(ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "kcpserver %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	return true
}
