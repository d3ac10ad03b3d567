package views

import "github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"

// sessions finds Sessions.
type sessions struct {
	names, users, tokens *index[string, *v1alpha1.Session]
}

func newSessions() sessions {
	return sessions{
		names: newIndex(func(s *v1alpha1.Session) []string { return []string{s.Name} }),
		users: newIndex(func(s *v1alpha1.Session) []string { return []string{s.Spec.UserRef.Name} }),
		tokens: newIndex(func(s *v1alpha1.Session) (hashes []string) {
			for _, t := range s.Spec.Tokens {
				hashes = append(hashes, t.Hash)
			}
			return hashes
		}),
	}
}

func (s sessions) indexes() []indexed[*v1alpha1.Session] {
	return []indexed[*v1alpha1.Session]{s.names, s.users, s.tokens}
}

// Session finds a Session by metadata.name. It has no ID token and no rotations, here and
// below: the session service reads them from kcp.
func (s sessions) Session(name string) (*v1alpha1.Session, bool) { return s.names.one(name) }

// SessionsOf returns the Sessions of a User, ended ones included, in no order.
func (s sessions) SessionsOf(user string) []*v1alpha1.Session { return s.users.all(user) }

// SessionsOfToken returns the Sessions through which an ID token was handed out, ended ones
// included. hash is the SHA-256 hash of the token in hexadecimal digits. It has more than
// one Session where the identity provider issues equal tokens for several logins.
func (s sessions) SessionsOfToken(hash string) []*v1alpha1.Session { return s.tokens.all(hash) }
