package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxReply bounds what is read as the reply to a question.
const maxReply = 4 << 10

// IsTerminal tells whether questions can be asked of whoever is at the other end
// of a file. The null device is a character device, too, but nobody is there.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// consent is the value of --yes, and what asks where it is not given.
type consent struct {
	*app
	yes bool
}

func (c *consent) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do it without asking")
}

// possible refuses what would have to be asked for where nobody can be asked.
// Commands call it first, so that a script that lacks --yes always fails.
func (c *consent) possible() error {
	if c.yes || c.Terminal {
		return nil
	}
	return fmt.Errorf("this asks before it does anything, but standard input is not a terminal; give --yes to do it without asking; %w", errUsage)
}

// typed asks for one of the names of what is at stake, which is harder to give by
// mistake than a y.
func (c *consent) typed(ctx context.Context, text, prompt string, names ...string) error {
	return c.ask(ctx, text+"\n"+prompt+": ", func(reply string) bool { return slices.Contains(names, reply) })
}

// agreed asks a question that is answered with yes or no, and means no when in
// doubt.
func (c *consent) agreed(ctx context.Context, text string) error {
	return c.ask(ctx, text+" [y/N] ", func(reply string) bool {
		return strings.EqualFold(reply, "y") || strings.EqualFold(reply, "yes")
	})
}

func (c *consent) ask(ctx context.Context, question string, good func(reply string) bool) error {
	if c.yes {
		return nil
	}
	fmt.Fprint(c.Err, question)
	// Nothing ends a read of a terminal, so an interrupt does not wait for it.
	replies := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(c.In, maxReply)).ReadString('\n')
		replies <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(c.Err)
		return ctx.Err()
	case reply := <-replies:
		if reply == "" || !good(reply) {
			return errors.New("not confirmed; nothing was done")
		}
		return nil
	}
}
