package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	impersonateUser  = "Impersonate-User"
	impersonateGroup = "Impersonate-Group"
	// authenticated is the group that kcp adds to every user. Clients may name it too.
	authenticated = "system:authenticated"
)

// elevation is a permitted use of sudo: the user and the groups that the request impersonates.
type elevation struct {
	user   string
	groups []string
}

// elevate returns the elevation of a request, or nil if it does not impersonate. It refuses any
// other impersonation.
func (p *Proxy) elevate(r *http.Request, c Caller, e tenancy.Entry) (*elevation, error) {
	if !impersonates(r.Header) {
		return nil, nil
	}
	sudo := &elevation{groups: []string{tenancy.SudoGroup(e.Workspace.UUID)}}
	if e.Sudo && p.config.Intend != nil {
		sudo.user = c.Username()
	}
	if sudo.user == "" {
		return nil, needsSudo("you cannot impersonate anybody here; an admin of the workspace can give you sudo for requests that need more rights")
	}
	if !sudo.asked(r.Header) {
		return nil, needsSudo("nobody can be impersonated here but yourself with the sudo group of this workspace: kubectl --as " +
			sudo.user + " --as-group " + sudo.groups[0])
	}
	if slices.Contains(r.Header[impersonateGroup], authenticated) {
		sudo.groups = append(sudo.groups, authenticated)
	}
	return sudo, nil
}

func needsSudo(message string) error {
	return errs.New(errs.Forbidden, message, errs.Cause{Type: tenancy.MissingSudo, Message: message})
}

// impersonates reports whether a request has impersonation headers, also ones that Connection
// names and a proxy would remove.
func impersonates(h http.Header) bool {
	for name := range h {
		if impersonation(name) {
			return true
		}
	}
	return namedInConnection(h)
}

func impersonation(name string) bool {
	const begin = "impersonate"
	return len(name) >= len(begin) && strings.EqualFold(name[:len(begin)], begin)
}

func namedInConnection(h http.Header) bool {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if impersonation(strings.TrimSpace(name)) {
				return true
			}
		}
	}
	return false
}

// asked reports whether the headers request exactly this elevation: the user, the sudo group,
// optionally system:authenticated, and nothing else.
func (e *elevation) asked(h http.Header) bool {
	for name := range h {
		if impersonation(name) && name != impersonateUser && name != impersonateGroup {
			return false
		}
	}
	users, sudo, others := h[impersonateUser], 0, 0
	for _, group := range h[impersonateGroup] {
		switch group {
		case e.groups[0]:
			sudo++
		case authenticated:
			others++
		default:
			return false
		}
	}
	return len(users) == 1 && users[0] == e.user && sudo == 1 && others <= 1 && !namedInConnection(h)
}

// write replaces the impersonation headers of out by the permitted ones.
func (e *elevation) write(out http.Header) {
	if e != nil {
		out[impersonateUser] = []string{e.user}
		out[impersonateGroup] = e.groups
	}
}
