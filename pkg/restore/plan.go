package restore

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// Plan is what a restored hub does before it serves.
type Plan struct {
	// Steps end what ended after the backup. One can stand for many events about the same thing.
	Steps []Step `json:"steps"`
	// Lost is what was given after the backup. One can stand for many events about the same thing, too.
	Lost []Loss `json:"lost"`
	// Ends say until when the past is known.
	Ends []End `json:"ends"`
	// Unknown names the parts of the past that are not known. The operator has accepted them.
	Unknown []string `json:"unknown"`
}

// Loss is something that was made or given after the backup, and that the restored hub does not have.
type Loss struct {
	What      string    `json:"what"`
	Source    string    `json:"source"`
	At        time.Time `json:"at"`
	By        string    `json:"by,omitempty"`
	Org       string    `json:"org,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Object    string    `json:"object,omitempty"`
	// Facts are what was given.
	Facts *audit.Facts `json:"facts,omitempty"`
	// Events is the number of events that it stands for, of which it is the last; 0 is for one.
	Events int `json:"events,omitempty"`
}

// UnknownError names the parts of the past that cannot be known.
type UnknownError struct{ Unknown []string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("not everything that ended after the backup can be known, so that people could get back what they lost; "+
		"restore again with the missing files in --replay, or with --accept-lost-history: %s", strings.Join(e.Unknown, "; "))
}

// Read returns the Plan of an Order. The error is an *UnknownError if the Order does not accept what is not known.
func Read(o Order) (Plan, error) {
	h, err := ReadHistory(o)
	if err != nil {
		return Plan{}, err
	}
	p := PlanOf(h)
	if len(p.Unknown) > 0 && !o.AcceptLostHistory {
		return Plan{}, &UnknownError{p.Unknown}
	}
	return p, nil
}

// PlanOf returns the Plan of a History.
func PlanOf(h History) Plan {
	p := Plan{Ends: h.Ends, Unknown: slices.Clone(h.Unknown)}
	persons, ended, given := personsOf(h.Events), fold{}, losses{}
	for _, e := range h.Events {
		meanings, ok := of(e.Action)
		if !ok {
			p.Unknown = append(p.Unknown, fmt.Sprintf("replica %s, event %d: this version of the hub does not know the action %q", e.Replica, e.Seq, e.Action))
			continue
		}
		if cut := cutClaims(e); cut != "" {
			const text = "replica %s, event %d: it does not name all permission claims that were rejected: %s"
			p.Unknown = append(p.Unknown, fmt.Sprintf(text, e.Replica, e.Seq, cut))
		}
		for _, a := range meanings {
			if a.when != nil && !a.when(e) {
				continue
			}
			if a.ends != "" {
				ended.add(stepOf(e, a, persons))
			}
			if a.gives != "" && e.Stage == audit.StageOutcome && e.Code < http.StatusBadRequest {
				given.add(Loss{
					What: a.gives, Source: e.ID, At: e.Time, By: cmp.Or(e.Actor.User, e.Actor.Bot), Org: e.Org, Workspace: e.Workspace,
					Object: objectOf(e, a), Facts: e.Facts,
				})
			}
		}
	}
	p.Steps, p.Lost = ended.steps(), given.all()
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(rank(a), rank(b)) })
	return p
}

// cutClaims returns what the audit log has written for the rejected claims of an event that it had no room for; it is
// empty if the event has all. Those that it names are rejected again nevertheless. Other lists that were cut take more
// than they should, and give nothing back.
func cutClaims(e audit.Event) string {
	claims := factsOf(e).RejectedClaims
	if len(claims) == 0 {
		return ""
	}
	var n int
	last := claims[len(claims)-1]
	if _, err := fmt.Sscanf(last, "and %d more", &n); err != nil {
		return ""
	}
	return last
}

func rank(s Step) int {
	if s.Kind.last() {
		return 1
	}
	return 0
}

// personsOf returns the persons of Sessions, as far as events say them. An event of the API names the person as its
// object, and an event of a login as its actor. The replay of another restore names the Session.
func personsOf(events []audit.Event) map[string]string {
	persons := map[string]string{}
	for _, e := range events {
		name, person := factsOf(e).Session, cmp.Or(e.Object, e.Actor.User)
		if name != "" && person != "" && e.Actor.Kind != audit.ActorHub {
			persons[name] = person
		}
	}
	return persons
}

func objectOf(e audit.Event, a action) string {
	if a.object != nil {
		return a.object(e)
	}
	return e.Object
}

// stepOf returns the Step that ends what an event ended. persons are those of Sessions.
func stepOf(e audit.Event, a action, persons map[string]string) Step {
	s := Step{
		Kind: a.ends, Source: e.ID, At: e.Time, Unanswered: e.Stage == audit.StageIntent, By: e.Actor.User,
		Org: e.Org, Workspace: e.Workspace, Object: objectOf(e, a), Facts: factsOf(e), State: a.state,
	}
	switch s.Kind {
	case BindInvitation:
		s.Facts.Issuer = e.Actor.Issuer
	case EndSession:
		s.Person = persons[s.Object]
	}
	return s
}
