package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// errNoHub means that what answered is something else.
var errNoHub = errors.New("the server's answer is not a kedge-hub's")

// session is a login with a client for it.
type session struct {
	api *client.Client
	app *app
	// path is the file with the logins, name the profile, and login its content.
	path, name string
	login      *config.Profile
	// relogin is the command that logs in again.
	relogin string
	// named is true if the command line names the hub.
	named bool
}

func (a *app) session(ctx context.Context) (*session, error) {
	path, c, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	name, err := a.choose(c)
	if err != nil {
		return nil, err
	}
	s := &session{app: a, path: path, name: name, login: c.Profiles[name], relogin: reloginCommand(c, name), named: a.server != ""}
	s.api, err = client.New(client.Config{Server: s.login.Server, Token: s.token, CA: s.login.CA, UserAgent: agent(), Advise: s.advise})
	return s, err
}

// load reads the file with the logins.
func (a *app) load(ctx context.Context) (path string, c *config.Config, err error) {
	if path, err = config.Path(a.configFile, a.Getenv); err != nil {
		return "", nil, err
	}
	c, err = config.Load(ctx, path)
	return path, c, err
}

// givenProfile is the profile that --profile or else $KEDGE_PROFILE names, or the empty string.
// byFlag is true for --profile.
func (a *app) givenProfile() (name string, byFlag bool, err error) {
	name, by := a.profile, "--profile"
	if byFlag = name != ""; !byFlag {
		name, by = a.Getenv("KEDGE_PROFILE"), "$KEDGE_PROFILE"
	}
	if name != "" && !config.ValidName(name) {
		return "", byFlag, fmt.Errorf("%s: give a name of at most 63 letters, digits, dots, hyphens and underscores; %w", by, errUsage)
	}
	return name, byFlag, nil
}

// givenServer is the hub that --server names, or the empty string.
func (a *app) givenServer() (string, error) {
	if a.server == "" {
		return "", nil
	}
	return hubURL(a.server)
}

// hubURL is the URL of the hub at an address. People copy that of a page of the portal, which can end with
// the secret of an invitation: no error repeats it.
func hubURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("--server: give the https URL of the hub, such as https://hub.example.com; %w", errUsage)
	}
	server := u.Scheme + "://" + u.Host
	if path := strings.TrimRight(u.Path, "/"); path != "" && path != "/ui" && !strings.HasPrefix(path, "/ui/") {
		return "", fmt.Errorf("--server: the URL of a hub has no path; give %s; %w", server, errUsage)
	}
	return server, nil
}

// choose returns the profile that a command uses. A profile is never replaced by another one for
// the same hub, which can be the login of another person.
func (a *app) choose(c *config.Config) (string, error) {
	name, byFlag, err := a.givenProfile()
	if err != nil {
		return "", err
	}
	server, err := a.givenServer()
	if err != nil {
		return "", err
	}
	named := name != ""
	if !named {
		name = c.Current
	}
	if server != "" && !byFlag {
		return chooseAt(c, server, name)
	}
	p := c.Profiles[name]
	switch {
	case p == nil && named:
		if server == "" {
			server = "URL"
		}
		return "", fmt.Errorf("not logged in with the profile %s; run: kedge login --server %s --profile %s", name, server, name)
	case p == nil && len(c.Profiles) > 0:
		return "", errors.New("no login is chosen; to see what there is and choose one, run: kedge profiles, then: kedge profiles use NAME")
	case p == nil:
		return "", errors.New("not logged in; run: kedge login --server URL")
	case server != "" && p.Server != server:
		return "", fmt.Errorf("the profile %s is a login to %s; for another, run: kedge login --server %s --profile NAME", name, p.Server, server)
	}
	return name, nil
}

// chooseAt returns the only profile for a hub, or preferred among several.
func chooseAt(c *config.Config, server, preferred string) (string, error) {
	names := c.At(server)
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("not logged in; run: kedge login --server %s", server)
	case slices.Contains(names, preferred):
		return preferred, nil
	case len(names) == 1:
		return names[0], nil
	}
	return "", fmt.Errorf("there are several logins to %s; give --profile with one of: %s", server, strings.Join(names, ", "))
}

// reloginCommand is the command that logs in again with a profile.
func reloginCommand(c *config.Config, name string) string {
	server := c.Profiles[name].Server
	command := "kedge login --server " + server
	if bot := c.Profiles[name].Bot; bot != "" {
		command = "kedge login --ci --bot " + bot + " --server " + server + ", or with --token-file"
	}
	if len(c.At(server)) > 1 {
		command += " --profile " + name
	}
	return command
}

// update changes the profile in the file.
func (s *session) update(ctx context.Context, change func(*config.Profile)) error {
	return config.Update(ctx, s.path, func(c *config.Config) error {
		p := c.Profiles[s.name]
		if p == nil {
			return s.loggedOut()
		}
		change(p)
		s.login = p
		return nil
	})
}

// advise replaces advice about the REST API in errors by advice about commands.
func (s *session) advise(err error) error {
	var refused *client.Error
	var away *client.UnreachableError
	switch {
	case errors.As(err, &away) && s.named:
		err = fmt.Errorf("%w; check that it is running, and what --server says", err)
	case errors.As(err, &away):
		err = fmt.Errorf("%w; check that it is running; it is the hub logged in to last, as %s says, and --server or kedge login chooses another", err, s.path)
	case !errors.As(err, &refused):
	case refused.Code() == http.StatusUnauthorized:
		refused.ErrStatus.Message = reasonOf(refused.ErrStatus.Message)
		err = fmt.Errorf("%w; to log in again, run: %s", err, s.relogin)
	case strings.Contains(refused.ErrStatus.Message, "/api/users/me/undelete"):
		err = fmt.Errorf("%w; to do that, run: kedge me undelete", err)
	}
	return err
}

// reasonOf cuts the hub's advice to log in again, which names neither the hub nor the profile.
func reasonOf(message string) string {
	reason, _, _ := strings.Cut(message, "; log in again")
	return reason
}
