package httpmw_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A tenant who writes without end fills no log, and no intent that is in it lacks its outcome: the budget
// decides about both, also when the minute ends between them.
func TestAudit_aFloodOfWritesHasOneEvent(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	l, clock := audit.New(t.Context(), &written), clocktesting.NewFakeClock(time.Unix(1_000, 0))
	a := httpmw.NewAuditor(l.Write, clock, nil, nil, audit.NewBudget(2, clock, l))
	entry := tenancy.Entry{Workspace: tenancy.Workspace{OrgUUID: "o", UUID: "w", ClusterID: "c"}}
	h := behindObserve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "configmaps"}
		httpmw.Limited(a.Audit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := httpmw.IntendProxied(r, entry, false); err != nil {
				t.Error(err)
			}
			if r.URL.Query().Has("slow") {
				clock.Step(time.Minute)
			}
			w.WriteHeader(http.StatusCreated)
		}))).ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	}))
	send := func(query string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/clusters/c/api/v1/configmaps"+query, nil))
	}
	for range 50 {
		send("")
	}
	send("?slow")
	send("")
	text := written.String()
	require.Equal(t, 3, strings.Count(text, `"stage":"intent"`))
	require.Equal(t, 3, strings.Count(text, `"action":"kubernetes create"`)-3, "each with its outcome")
	require.Equal(t, 1, strings.Count(text, `"action":"kubernetes writes"`))
	require.Contains(t, text, `"suppressed":49,"facts":{"counts":{"create configmaps":49}}`)
}
