package sessions

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Sessions are the caches of Sessions.
type Sessions interface {
	Session(name string) (*v1alpha1.Session, bool)
	SessionsOf(user string) []*v1alpha1.Session
}

// Service is the part of session.Service that the handler uses.
type Service interface {
	// End ends a Session of a User. The error is NotFound if the User has none of that name.
	End(ctx context.Context, user, name string) error
	// EndAll ends all Sessions of a User and refuses the ID tokens issued until now.
	EndAll(ctx context.Context, user string) error
}

// Handler serves the Sessions of people.
type Handler struct {
	api.Deps
	Sessions Sessions
	Service  Service
	// Recheck ends the streams to which a User has no right any more.
	Recheck func(user string)
	// IdleTimeout is the time without a use after which a Session ends.
	IdleTimeout time.Duration
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.Get("/users/me/sessions", httpapi.Handle(h.list))
	r.Delete("/users/me/sessions", httpapi.Handle(h.endAll))
	r.Delete("/users/me/sessions/{session}", httpapi.Handle(h.end))
	r.Group(func(r chi.Router) {
		r.Use(httpmw.RequirePlatformAdmin)
		r.Get("/admin/users/{name}/sessions", httpapi.Handle(h.list))
		r.Delete("/admin/users/{name}/sessions", httpapi.Handle(h.endAll))
		r.Get("/admin/users/{name}/sessions/{session}", httpapi.Handle(h.get))
		r.Delete("/admin/users/{name}/sessions/{session}", httpapi.Handle(h.end))
	})
}

func (h *Handler) viewOf(s *v1alpha1.Session, r *http.Request) rest.Session {
	v := rest.Session{
		ID: s.Name, Client: string(s.Spec.Client), Description: s.Spec.Description, CreatedAt: s.CreationTimestamp,
		LastUsedAt: s.Spec.LastUsedAt, ExpiresAt: s.Spec.ExpiresAt, Current: s.Name == httpmw.CallerOf(r).Session,
	}
	if idle := s.Spec.LastUsedAt.Add(h.IdleTimeout); idle.Before(v.ExpiresAt.Time) {
		v.ExpiresAt = metav1.NewTime(idle)
	}
	return v
}

// owner returns the User whose Sessions a request is about: the one in the path, or the
// caller.
func (h *Handler) owner(r *http.Request) (*v1alpha1.User, error) {
	name := chi.URLParam(r, "name")
	if name == "" {
		return httpmw.CallerOf(r).User, nil
	}
	return h.Person(name)
}

// open reports whether the client of a Session can use it. A code that was not redeemed may
// never be.
func (h *Handler) open(s *v1alpha1.Session, owner *v1alpha1.User) bool {
	return s.Spec.Code == nil && !tenancy.SessionEnded(s, owner, h.Clock.Now(), h.IdleTimeout)
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	owner, err := h.owner(r)
	if err != nil {
		return err
	}
	var items []rest.Session
	for _, s := range h.Sessions.SessionsOf(owner.Name) {
		if h.open(s, owner) {
			items = append(items, h.viewOf(s, r))
		}
	}
	return paging.Write(w, r, items, func(v rest.Session) (string, string) { return v.Description, v.ID })
}

// found returns the Session in the path, for its owner.
func (h *Handler) found(r *http.Request) (*v1alpha1.User, *v1alpha1.Session, error) {
	owner, err := h.owner(r)
	if err != nil {
		return nil, nil, err
	}
	s, ok := h.Sessions.Session(chi.URLParam(r, "session"))
	if !ok || s.Spec.UserRef.Name != owner.Name || !h.open(s, owner) {
		return nil, nil, unknown()
	}
	return owner, s, nil
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	_, s, err := h.found(r)
	if err != nil {
		return err
	}
	httpapi.Tag(w, s.ResourceVersion)
	return httpapi.Write(w, http.StatusOK, h.viewOf(s, r))
}

func (h *Handler) end(w http.ResponseWriter, r *http.Request) error {
	owner, s, err := h.found(r)
	if err != nil {
		return err
	}
	return h.ended(owner.Name, audit.Facts{Session: s.Name}, func(ctx context.Context, match api.Match) error {
		if match != nil {
			// An end is the same whatever changed meanwhile: the write needs no precondition.
			if err := match(s.ResourceVersion); err != nil {
				return err
			}
		}
		err := h.Service.End(ctx, owner.Name, s.Name)
		if errs.Is(err, errs.NotFound) {
			return unknown()
		}
		return err
	}, func() bool {
		seen, ok := h.Sessions.Session(s.Name)
		return !ok || seen.Spec.EndedAt != nil
	}).Serve(w, r, &h.Deps)
}

func (h *Handler) endAll(w http.ResponseWriter, r *http.Request) error {
	all, err := httpapi.Flag(r, "all")
	if err != nil {
		return err
	}
	if !all {
		return errs.InvalidField("query:all", "must be true to end all sessions; to end one, name it in the path")
	}
	owner, err := h.owner(r)
	if err != nil {
		return err
	}
	var began time.Time
	return h.ended(owner.Name, audit.Facts{All: true}, func(ctx context.Context, _ api.Match) error {
		began = h.Clock.Now().Truncate(time.Second)
		return h.Service.EndAll(ctx, owner.Name)
	}, func() bool {
		seen, ok := h.Views.ByName(owner.Name)
		if !ok {
			return true
		}
		at := seen.Spec.TokensValidAfter
		return at != nil && !at.Time.Before(began) &&
			!slices.ContainsFunc(h.Sessions.SessionsOf(owner.Name), func(s *v1alpha1.Session) bool { return h.open(s, seen) })
	}).Serve(w, r, &h.Deps)
}

// ended is the end of Sessions of a User. The answer is not faster than the end of the streams.
func (h *Handler) ended(owner string, facts audit.Facts, end func(context.Context, api.Match) error, seen func() bool) api.Change[string] {
	return api.Change[string]{
		Intent: httpmw.Intent{Reduces: true, Object: owner, Facts: facts},
		Write:  func(ctx context.Context, match api.Match) (string, error) { return owner, end(ctx, match) },
		Refs:   func(string) []tenancy.Ref { return []tenancy.Ref{tenancy.UserRef(owner)} },
		Seen:   func(*string) bool { return seen() },
		Ends:   []string{owner},
		Done:   h.Recheck,
	}
}

func unknown() error { return errs.New(errs.NotFound, "there is no such session") }
