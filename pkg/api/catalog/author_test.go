package catalog_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// An entry of a person who is removed while kcp stores it is withdrawn before the answer.
func TestCreate_withdrawsAnEntryOfARemovedMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.author = func() bool { return slices.Contains(w.did, "create") }
	create := apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}
	w.do(create).Refused(t, http.StatusForbidden)
	require.Contains(t, w.did, "delete")
	require.Empty(t, w.held[acmeCluster])
	w.author = nil
	w.do(create).Object(t, http.StatusCreated)
}

// A change that lets members write more is taken back, too.
func TestReplace_takesBackAChangeOfARemovedMember(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]int{"before it is written": 0, "while it is written": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			made := w.do(apitest.Call{Method: http.MethodPost, Path: inAcme, Body: body(t, nil)}).Object(t, http.StatusCreated)
			asked := 0
			w.author = func() bool { asked++; return asked > written }
			change := apitest.Call{Method: http.MethodPut, Path: inAcme + "/" + made["uuid"].(string), Body: body(t, map[string]any{"memberResources": []string{"widgets"}})}
			w.do(change).Refused(t, http.StatusForbidden)
			require.Empty(t, w.held[acmeCluster][made["uuid"].(string)].Spec.MemberResources)
			w.author = nil
			w.do(change).Object(t, http.StatusOK)
			require.Equal(t, []string{"widgets"}, w.held[acmeCluster][made["uuid"].(string)].Spec.MemberResources)
		})
	}
}

// A person who could not publish an entry any more does not say what members write in the Workspaces that have its API.
func TestReplace_isRefusedToAPublisherWhoseRightHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do(apitest.Call{Method: http.MethodPost, As: apitest.Mixed, Path: inAcme, Body: body(t, map[string]any{"memberResources": []string{"widgets"}})}).
		Object(t, http.StatusCreated)
	name := made["uuid"].(string)
	change := func(as string, resources ...string) apitest.Call {
		return apitest.Call{Method: http.MethodPut, As: as, Path: inAcme + "/" + name, Body: body(t, map[string]any{"memberResources": resources})}
	}
	w.do(change(apitest.Mixed, "widgets", "gadgets")).Object(t, http.StatusOK)
	w.failing = func(step string) error {
		if strings.HasPrefix(step, "may bind") {
			return errs.New(errs.Forbidden, "no")
		}
		return nil
	}
	w.do(change(apitest.Mixed)).Refused(t, http.StatusForbidden)
	require.Equal(t, []string{"widgets", "gadgets"}, w.held[acmeCluster][name].Spec.MemberResources)
	w.do(change(apitest.Admin, "widgets")).Object(t, http.StatusOK)
}
