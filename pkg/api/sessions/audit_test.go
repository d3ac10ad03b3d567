package sessions_test

import (
	"net/http"
	"testing"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestAudit_saysWhichSessionsEnd(t *testing.T) {
	t.Parallel()
	start := func(*testing.T) (http.Handler, *apitest.World) {
		f := newFixture(t)
		return f.http, f.world
	}
	call := func(as, path string) apitest.Call { return apitest.Call{As: as, Method: http.MethodDelete, Path: path} }
	apitest.RequireIntents(t, start, map[string]apitest.Intent{
		"one":                      {Call: call(apitest.Admin, path+"/"+mine2), Object: apitest.Admin, Facts: `{"session":"` + mine2 + `"}`, Reduces: true},
		"all":                      {Call: call(apitest.Admin, path+"?all=true"), Object: apitest.Admin, Facts: `{"all":true}`, Reduces: true},
		"one, by a platform admin": {Call: call(apitest.Operator, adminPath+"/"+mine), Object: apitest.Admin, Facts: `{"session":"` + mine + `"}`, Reduces: true},
		"all, by a platform admin": {Call: call(apitest.Operator, adminPath+"?all=true"), Object: apitest.Admin, Facts: `{"all":true}`, Reduces: true},
	})
}
