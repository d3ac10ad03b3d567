package catalog_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestCreate_saysByWhoseRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Object(t, http.StatusCreated)
	by := w.held[acmeCluster][tenancy.CatalogEntryName(apitest.Acme, "widgets")].Spec.PublishedBy
	require.False(t, by.Platform)
	require.Equal(t, apitest.Admin, by.User.Name)

	w = newWorld(t)
	w.do(apitest.Call{Method: http.MethodPost, Path: global, Body: body(t, nil)}).Object(t, http.StatusCreated)
	require.Equal(t, &v1alpha1.CatalogPublisher{Platform: true}, w.held[globalCluster][tenancy.CatalogEntryName("", "widgets")].Spec.PublishedBy)
}

// A slug that an Organization took first holds no name against the platform.
func TestCreate_takesASlugByForce(t *testing.T) {
	t.Parallel()
	for _, cached := range []bool{true, false} {
		w := newWorld(t)
		if cached {
			w.put(apitest.Acme, "widgets", "somebody")
			w.put(apitest.Globex, "widgets", "somebody")
		} else {
			w.others = []string{acmeCluster, "globexcluster"}
		}
		for _, query := range []string{"", "?force=false"} {
			refused := w.do(apitest.Call{Method: http.MethodPost, Path: global + query, Body: body(t, nil)}).Refused(t, http.StatusConflict)
			require.Contains(t, refused.Message, "force=true")
			require.NotContains(t, w.held[globalCluster], tenancy.CatalogEntryName("", "widgets"))
		}
		w.do(apitest.Call{Method: http.MethodPost, Path: global + "?force=true", Body: body(t, nil)}).Object(t, http.StatusCreated)
		require.Equal(t, cached, len(w.held[acmeCluster]) == 1, "their entries stay")
	}
	w := newWorld(t)
	w.put("", "widgets", "somebody")
	w.do(apitest.Call{Method: http.MethodPost, Path: global + "?force=true", Body: body(t, nil)}).Refused(t, http.StatusConflict)
	w.do(apitest.Call{Method: http.MethodPost, Path: inAcme + "?force=true", Body: body(t, nil)}).RefusedField(t, "query:force")
	w.do(apitest.Call{Method: http.MethodPost, Path: global + "?force=yes", Body: body(t, nil)}).Refused(t, http.StatusBadRequest)
}

func TestPlatformAdmins_seeAndEndEntriesOfOrganizations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs, everybodys := w.put(apitest.Acme, "mine", apitest.Admin), w.put(apitest.Globex, "theirs", "somebody"), w.put("", "everybodys", apitest.Operator)
	for query, want := range map[string][]string{
		"": {everybodys.Name}, "?scope=global": {everybodys.Name}, "?scope=org": {mine.Name, theirs.Name}, "?scope=org&q=mine": {mine.Name},
	} {
		require.Equal(t, want, w.do(apitest.Call{Method: http.MethodGet, Path: global + query}).Items(t, "uuid"), query)
	}
	listed := w.do(apitest.Call{Method: http.MethodGet, Path: global + "?scope=org"})
	require.Equal(t, []string{apitest.Acme, apitest.Globex}, listed.Items(t, "org"))
	require.Equal(t, []string{"Acme", "Globex"}, listed.Items(t, "orgDisplayName"))
	w.do(apitest.Call{Method: http.MethodGet, Path: global + "?scope=all"}).Refused(t, http.StatusBadRequest)
	require.NotContains(t, w.do(apitest.Call{Method: http.MethodGet, Path: inAcme}).Body, "orgDisplayName")

	at := global + "/" + theirs.Name
	require.Equal(t, "Globex", w.do(apitest.Call{Method: http.MethodGet, Path: at}).Object(t, http.StatusOK)["orgDisplayName"])
	for _, person := range []string{apitest.Admin, apitest.Foreigner} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			w.do(apitest.Call{As: person, Method: method, Path: at}).Refused(t, http.StatusForbidden)
		}
	}
	w.do(apitest.Call{Method: http.MethodPut, Path: at, Body: body(t, nil)}).Refused(t, http.StatusNotFound)
	stale := apitest.Call{Method: http.MethodDelete, Path: at, Header: http.Header{"If-Match": {`"old"`}}}
	w.do(stale).Refused(t, http.StatusPreconditionFailed)
	require.Contains(t, w.held["globexcluster"], theirs.Name)

	_ = w.tenants.Events()
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: at}).Code)
	require.NotContains(t, w.held["globexcluster"], theirs.Name)
	events := w.tenants.Events()
	require.Len(t, events, 2)
	for _, e := range events {
		require.Equal(t, apitest.Globex, e.Org, "the audit log of the Organization has it")
		require.Equal(t, apitest.Operator, e.Actor.User)
		require.False(t, e.Outsider)
		require.Equal(t, "theirs", e.Facts.Slug)
	}
	w.do(apitest.Call{Method: http.MethodDelete, Path: at}).Refused(t, http.StatusNotFound)
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: global + "/" + everybodys.Name}).Code, "the control")

	w.grace()
	require.Empty(t, w.do(apitest.Call{Method: http.MethodGet, Path: global + "?scope=org"}).Items(t, "uuid"), "an Organization in its grace has no entries")
	w.do(apitest.Call{Method: http.MethodDelete, Path: global + "/" + mine.Name}).Refused(t, http.StatusNotFound)
}
