package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBrowser_isTheOneOfThePersonOrTheSystems(t *testing.T) {
	t.Parallel()
	const url = "https://hub?x=%73"
	for name, c := range map[string]struct {
		os, browser string
		want        [][]string
	}{
		"Linux":           {"linux", "", [][]string{{"xdg-open", url}}},
		"macOS":           {"darwin", "", [][]string{{"open", url}}},
		"Windows":         {"windows", "", [][]string{{"rundll32", "url.dll,FileProtocolHandler", url}}},
		"a command":       {"linux", "/bin/firefox", [][]string{{"/bin/firefox", url}}},
		"with arguments":  {"darwin", "firefox --new  %s -x", [][]string{{"firefox", "--new", url, "-x"}}},
		"the second":      {"linux", "missing::w3m", [][]string{{"missing", url}, {"w3m", url}}},
		"one for Windows": {"windows", `C:\firefox.exe`, [][]string{{`C:\firefox.exe`, url}}},
		"none":            {"linux", ":", nil},
	} {
		var started [][]string
		a := &app{Environment: Environment{OS: c.os, Getenv: func(string) string { return c.browser }, Start: func(name string, args ...string) error {
			started = append(started, append([]string{name}, args...))
			if name == "missing" {
				return errors.New("not found")
			}
			return nil
		}}}
		err := a.openBrowser(url)
		require.Equal(t, c.want == nil, err != nil, name)
		require.Equal(t, c.want, started, name)
	}
}
