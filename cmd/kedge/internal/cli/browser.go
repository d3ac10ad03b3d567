package cli

import (
	"errors"
	"os/exec"
	"strings"
)

// Start starts a program and does not wait for its end. Its output is discarded.
func Start(name string, args ...string) error {
	cmd := exec.Command(name, args...) //nolint:gosec,noctx // The person names the program with $BROWSER; it stays open after kedge ends.
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// overSSH reports whether the person works over SSH and has no browser on this computer.
func (a *app) overSSH() bool {
	return a.Getenv("SSH_CONNECTION") != "" && a.Getenv("DISPLAY") == "" && a.Getenv("WAYLAND_DISPLAY") == "" && a.Getenv("BROWSER") == ""
}

// openBrowser opens a URL with $BROWSER or, without it, the system's browser.
func (a *app) openBrowser(url string) error {
	browsers := a.Getenv("BROWSER")
	switch {
	case browsers != "":
	case a.OS == "darwin":
		return a.Start("open", url)
	case a.OS == "windows":
		return a.Start("rundll32", "url.dll,FileProtocolHandler", url)
	default:
		return a.Start("xdg-open", url)
	}
	// $BROWSER lists commands, of which the first that starts is used. %s in a command is
	// replaced by the URL. A path on Windows contains a colon.
	list := []string{browsers}
	if a.OS != "windows" {
		list = strings.Split(browsers, ":")
	}
	err := errors.New("$BROWSER names no command")
	for _, command := range list {
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		if !strings.Contains(command, "%s") {
			words = append(words, url)
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%s", url)
		}
		if err = a.Start(words[0], words[1:]...); err == nil {
			return nil
		}
	}
	return err
}
