package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A proxied write has its Org, Workspace and cluster in the log, whichever layer refuses it.
func TestAudit_saysWhereARefusedWriteWasToGo(t *testing.T) {
	t.Parallel()
	entry := tenancy.Entry{Workspace: tenancy.Workspace{OrgUUID: "o", UUID: "w", ClusterID: "c"}}
	for name, c := range map[string]struct {
		token   string
		belongs bool
		then    func(w http.ResponseWriter, r *http.Request) error
		// want are the outsider flags of the events.
		want []bool
		name string
	}{
		"by authentication":           {"bad", false, nil, []bool{true}, ""},
		"by a limit":                  {"alice", true, func(http.ResponseWriter, *http.Request) error { return errs.New(errs.TooManyRequests, "slow down") }, []bool{false}, ""},
		"by the gate":                 {"alice", true, func(http.ResponseWriter, *http.Request) error { return errs.New(errs.Forbidden, "no") }, []bool{false}, ""},
		"by the gate, of an outsider": {"alice", false, func(http.ResponseWriter, *http.Request) error { return errs.New(errs.Forbidden, "no") }, []bool{true}, ""},
		"by kcp": {"alice", true, func(w http.ResponseWriter, r *http.Request) error {
			if err := httpmw.IntendProxied(r, entry, false); err != nil {
				return err
			}
			w.WriteHeader(http.StatusForbidden)
			return nil
		}, []bool{false, false}, ""},
		"by nobody": {"alice", true, func(w http.ResponseWriter, r *http.Request) error {
			if err := httpmw.IntendProxied(r, entry, false); err != nil {
				return err
			}
			httpmw.Made(r, "made-7")
			w.WriteHeader(http.StatusCreated)
			return nil
		}, []bool{false, false}, "made-7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []audit.Event
			a := httpmw.NewAuditor(func(e audit.Event) error {
				events = append(events, e)
				return nil
			}, clocktesting.NewFakePassiveClock(time.Unix(1_000, 0)), nil, func(_ *http.Request, caller *httpmw.Caller) httpmw.Place {
				return httpmw.Place{Org: "o", Workspace: "w", Cluster: "c", Belongs: caller != nil && c.belongs}
			}, nil)
			shape := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "configmaps"}
					next.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
				})
			}
			tokens := authenticator(func(token string) (*auth.Identity, bool, error) {
				return &auth.Identity{Kind: auth.Person, Issuer: "test", Subject: token}, token != "bad", nil
			})
			router := chi.NewRouter()
			router.Use(behindObserve, a.Refusals)
			router.With(shape, a.Audit, httpmw.Authenticate(authentication(tokens, everybody{}, nil)), httpmw.Limited).Handle("/clusters/*", httpapi.Handle(c.then))
			r := httptest.NewRequest(http.MethodPost, "/clusters/c/api/v1/configmaps", nil)
			r.Header.Set("Authorization", "Bearer "+c.token)
			router.ServeHTTP(httptest.NewRecorder(), r)
			require.Len(t, events, len(c.want))
			for i, e := range events {
				require.Equal(t, [3]string{"o", "w", "c"}, [3]string{e.Org, e.Workspace, e.Cluster})
				require.Equal(t, c.want[i], e.Outsider)
			}
			if last := events[len(events)-1]; last.Resource != nil {
				require.Equal(t, c.name, last.Resource.Name)
			}
		})
	}
}
