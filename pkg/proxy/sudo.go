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
	// authenticated is the group that kcp adds to a person by itself, and that
	// clients may therefore name, too.
	authenticated = "system:authenticated"
)

// elevation is sudo that was checked: as whom and in which groups a request goes
// to kcp.
type elevation struct {
	user   string
	groups []string
}

// elevate finds out whether a request asks for sudo; nil is for one that does not
// impersonate at all. Impersonation of every other kind is refused.
func (p *Proxy) elevate(r *http.Request, e tenancy.Entry) (*elevation, error) {
	if !impersonates(r.Header) {
		return nil, nil
	}
	sudo := &elevation{groups: []string{tenancy.SudoGroup(e.Workspace.UUID)}}
	if e.Sudo && p.config.Identity != nil && p.config.Elevated != nil {
		sudo.user = p.config.Identity(r)
	}
	if sudo.user == "" {
		return nil, errs.New(errs.Forbidden,
			"you cannot impersonate anybody here; an admin of the workspace can give you sudo for requests that need more rights")
	}
	if !sudo.asked(r.Header) {
		return nil, errs.New(errs.Forbidden, "nobody can be impersonated here but yourself with the sudo group of this workspace: kubectl --as "+
			sudo.user+" --as-group "+sudo.groups[0])
	}
	if slices.Contains(r.Header[impersonateGroup], authenticated) {
		sudo.groups = append(sudo.groups, authenticated)
	}
	return sudo, nil
}

// impersonates tells whether anything in a request looks like impersonation, be
// it that Connection would take it out on the way.
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

// asked tells whether the headers ask for just this elevation: the one user, the
// one group, which may have system:authenticated beside it, and nothing else.
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

// write puts into out what was checked, whatever became there of what came in.
func (e *elevation) write(out http.Header) {
	if e != nil {
		out[impersonateUser] = []string{e.user}
		out[impersonateGroup] = e.groups
	}
}
