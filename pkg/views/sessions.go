package views

import (
	"slices"
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

type sessions struct {
	mu    sync.RWMutex
	names map[string]*v1alpha1.Session
	// users and tokens have the Sessions by User and by the hash of each token that was
	// handed out. Slices are replaced and not changed, because readers may have them.
	users  map[string][]*v1alpha1.Session
	tokens map[string][]*v1alpha1.Session
}

func newSessions() *sessions {
	return &sessions{
		names:  map[string]*v1alpha1.Session{},
		users:  map[string][]*v1alpha1.Session{},
		tokens: map[string][]*v1alpha1.Session{},
	}
}

func (s *sessions) change(_ string, old, new *v1alpha1.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		delete(s.names, old.Name)
		without(s.users, old.Spec.UserRef.Name, old)
		for _, t := range old.Spec.Tokens {
			without(s.tokens, t.Hash, old)
		}
	}
	if new != nil {
		s.names[new.Name] = new
		with(s.users, new.Spec.UserRef.Name, new)
		for _, t := range new.Spec.Tokens {
			with(s.tokens, t.Hash, new)
		}
	}
}

func with(all map[string][]*v1alpha1.Session, key string, added *v1alpha1.Session) {
	all[key] = append(slices.Clip(all[key]), added)
}

func without(all map[string][]*v1alpha1.Session, key string, removed *v1alpha1.Session) {
	left := slices.DeleteFunc(slices.Clone(all[key]), func(s *v1alpha1.Session) bool { return s.Name == removed.Name })
	if len(left) == 0 {
		delete(all, key)
		return
	}
	all[key] = left
}

// Session finds a Session by metadata.name. It has no ID token and no rotations, here and
// below: the session service reads them from kcp.
func (v *Views) Session(name string) (*v1alpha1.Session, bool) {
	v.sessions.mu.RLock()
	defer v.sessions.mu.RUnlock()
	s, ok := v.sessions.names[name]
	return s, ok
}

// SessionsOf returns the Sessions of a User, ended ones included, in no order. The slice is
// shared: read only.
func (v *Views) SessionsOf(user string) []*v1alpha1.Session {
	v.sessions.mu.RLock()
	defer v.sessions.mu.RUnlock()
	return v.sessions.users[user]
}

// SessionsOfToken returns the Sessions through which an ID token was handed out, ended ones
// included. hash is the SHA-256 hash of the token in hexadecimal digits. It has more than
// one Session where the identity provider issues equal tokens for several logins. The slice
// is shared: read only.
func (v *Views) SessionsOfToken(hash string) []*v1alpha1.Session {
	v.sessions.mu.RLock()
	defer v.sessions.mu.RUnlock()
	return v.sessions.tokens[hash]
}

func (s *sessions) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.names)
}
