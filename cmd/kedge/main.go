// Command kedge is the command line of the hub and the exec plugin that gives kubectl its
// tokens. Under the name kubectl-kedge it is a kubectl plugin.
package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	streams := cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: cli.IsTerminal(os.Stdin), Shown: cli.IsTerminal(os.Stdout),
	}
	environment := cli.Environment{
		Getenv: os.Getenv, Hostname: os.Hostname, Clock: clock.RealClock{}, OS: runtime.GOOS, Start: cli.Start, Run: cli.Run, Outside: http.DefaultClient,
	}
	os.Exit(cli.Main(ctx, os.Args[1:], streams, environment))
}
