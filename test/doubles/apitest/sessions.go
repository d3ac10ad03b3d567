package apitest

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Now is the time at which callers are authenticated: an hour before the Epoch.
func Now() time.Time { return Epoch().Add(-time.Hour) }

// Session returns a Session of a User that was used a minute ago. The bearer tokens of
// tokens were handed out through it.
func Session(name, user string, tokens ...string) *v1alpha1.Session {
	s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{
		UserRef: v1alpha1.NamedRef{Name: user}, Client: v1alpha1.SessionCLI, Description: "host of " + user,
		LastUsedAt: metav1.NewTime(Now().Add(-time.Minute)), ExpiresAt: metav1.NewTime(Now().Add(24 * time.Hour)),
	}}
	s.Name, s.Generation, s.CreationTimestamp, s.ResourceVersion = name, 1, Epoch(), FirstVersion
	for _, t := range tokens {
		s.Spec.Tokens = append(s.Spec.Tokens, v1alpha1.SessionToken{Hash: t, ExpiresAt: Epoch()})
	}
	return s
}

// PutSession creates or replaces a Session.
func (w *World) PutSession(s *v1alpha1.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[s.Name] = s
	w.touch(tenancy.SessionRef(s.Name), tenancy.UserRef(s.Spec.UserRef.Name))
}

// ChangeSession replaces a Session by a changed copy.
func (w *World) ChangeSession(name string, change func(*v1alpha1.Session)) {
	found, _ := w.Session(name)
	s := found.DeepCopy()
	change(s)
	w.PutSession(s)
}

// Session finds a Session by name.
func (w *World) Session(name string) (*v1alpha1.Session, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.sessions[name]
	return s, ok
}

// SessionsOf returns the Sessions of a User.
func (w *World) SessionsOf(user string) []*v1alpha1.Session {
	return w.sessionsWith(func(s *v1alpha1.Session) bool { return s.Spec.UserRef.Name == user })
}

// SessionsOfToken returns the Sessions of a token. The hash of a token is the token itself.
func (w *World) SessionsOfToken(hash string) []*v1alpha1.Session {
	return w.sessionsWith(func(s *v1alpha1.Session) bool {
		return slices.ContainsFunc(s.Spec.Tokens, func(t v1alpha1.SessionToken) bool { return t.Hash == hash })
	})
}

func (w *World) sessionsWith(wanted func(*v1alpha1.Session) bool) []*v1alpha1.Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*v1alpha1.Session
	for _, s := range w.sessions {
		if wanted(s) {
			found = append(found, s)
		}
	}
	return found
}
