package httpmw

import (
	"net/http"
	"slices"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// Admins are the platform admins or the auditors, as the operator's flags name them. Users are usernames of
// static users and {issuer}#{subject} of others; Groups are groups of the credential, with
// their prefix.
type Admins struct{ Users, Groups []string }

// Has reports whether an identity is one of theirs. Platform admins need no approval, because
// nobody could approve the first one. Only what the operator or the issuer decides counts: the
// name of a User, the preferred username and the email address are the choice of the person.
func (a Admins) Has(id *auth.Identity) bool {
	return slices.Contains(a.Users, AdminName(id)) || slices.ContainsFunc(id.Groups, func(g string) bool { return slices.Contains(a.Groups, g) })
}

// AdminName returns the name by which --admin-user names a person.
func AdminName(id *auth.Identity) string {
	if id.Issuer == auth.StaticIssuer {
		return id.Subject
	}
	return id.Issuer + "#" + id.Subject
}

// RequirePlatformAdmin refuses callers who are not platform admins.
func RequirePlatformAdmin(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !CallerOf(r).PlatformAdmin {
			return errs.New(errs.Forbidden, "only a platform admin may do this")
		}
		belongs(r)
		next.ServeHTTP(w, r)
		return nil
	})
}

// RequireAuditor refuses callers who are neither auditors nor platform admins. It is for routes that change nothing.
func RequireAuditor(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !CallerOf(r).MayAudit() {
			return errs.New(errs.Forbidden, "only an auditor or a platform admin may do this")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
