package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// maxReply is the maximum length of a reply, in bytes.
const maxReply = 4 << 10

// IsTerminal reports whether a file is a terminal. It asks the system: the null device is a character
// device like a terminal, and on Windows os.SameFile cannot tell it from a console.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// consent is the value of --yes and the prompt that replaces it.
type consent struct {
	*app
	yes bool
}

func (c *consent) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation")
}

// first makes a command fail at once if a confirmation is needed and there is no terminal.
func (c *consent) first(cmd *cobra.Command) *cobra.Command {
	c.flag(cmd)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.possible(); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// possible fails if a confirmation is needed and there is no terminal. Commands call it first, so
// that a script without --yes always fails.
func (c *consent) possible() error {
	if c.yes || c.Terminal {
		return nil
	}
	return fmt.Errorf("this asks before it does anything, but standard input is not a terminal; give --yes to do it without asking; %w", errUsage)
}

// typed asks the user to type one of the names, which is harder to do by mistake than a y.
func (c *consent) typed(ctx context.Context, text, prompt string, names ...string) error {
	return c.ask(ctx, text+"\n"+prompt+": ", func(reply string) bool { return slices.Contains(names, reply) })
}

// agreed asks a yes-or-no question. The default is no.
func (c *consent) agreed(ctx context.Context, text string) error {
	return c.ask(ctx, text+" [y/N] ", func(reply string) bool {
		return strings.EqualFold(reply, "y") || strings.EqualFold(reply, "yes")
	})
}

func (c *consent) ask(ctx context.Context, question string, good func(reply string) bool) error {
	if c.yes {
		return nil
	}
	reply, err := c.reply(ctx, question)
	if err != nil {
		return err
	}
	if reply == "" || !good(reply) {
		return errors.New("not confirmed; nothing was done")
	}
	return nil
}

// reply asks a question and returns what the person types.
func (c *consent) reply(ctx context.Context, question string) (string, error) {
	fmt.Fprint(c.Err, printableLines(question))
	// A read from a terminal cannot be cancelled, so an interrupt does not wait for it.
	replies := make(chan string, 1)
	go func() {
		replies <- strings.TrimSpace(line(c.In))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(c.Err)
		return "", ctx.Err()
	case reply := <-replies:
		return reply, nil
	}
}

// line reads a line and nothing after it, which can be the reply to the next question.
func line(in io.Reader) string {
	var read []byte
	for one := make([]byte, 1); len(read) < maxReply; {
		n, err := in.Read(one)
		if n == 1 && one[0] != '\n' {
			read = append(read, one[0])
		}
		if err != nil || n == 1 && one[0] == '\n' {
			break
		}
	}
	return string(read)
}
