package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// An invalid command line ends with 2 and says what to give, whatever is wrong with it.
func TestCommand_refusesANumberOfArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"backup"}, "kedge-hub backup takes a file, a folder, or - for the standard output"},
		{[]string{"backup", "a", "b"}, "kedge-hub backup takes a file, a folder, or - for the standard output; it got 2 arguments"},
		{[]string{"restore", "a", "b"}, "kedge-hub restore takes one file"},
		{[]string{"bakcup"}, `"bakcup" is no command; kedge-hub takes flags alone`},
		{[]string{"check", "a"}, "kedge-hub check takes flags alone"},
		{[]string{"verify", "a"}, "kedge-hub verify takes flags alone"},
		{[]string{"version", "a"}, "kedge-hub version takes flags alone"},
	} {
		cmd := command()
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		require.ErrorIs(t, err, errUsage, c.args)
		require.ErrorContains(t, err, c.says)
	}
}
