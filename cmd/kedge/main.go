// Command kedge is the command line of the hub and the exec plugin that gives kubectl its
// tokens. Under the name kubectl-kedge it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: cli.IsTerminal(os.Stdin)}, os.Getenv))
}
