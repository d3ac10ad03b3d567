package paging_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

type item struct{ name, uuid string }

func key(i item) (string, string) { return i.name, i.uuid }

func page(t testing.TB, query url.Values, items ...item) (rest.List[item], error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query.Encode(), http.NoBody)
	return paging.Page(r, items, key)
}

func TestPage_isSortedByNameAndThenUUID(t *testing.T) {
	t.Parallel()
	list, err := page(t, nil, item{"b", "1"}, item{"a", "3"}, item{"B", "4"}, item{"a", "2"})
	require.NoError(t, err)
	require.Equal(t, []item{{"B", "4"}, {"a", "2"}, {"a", "3"}, {"b", "1"}}, list.Items)
	require.Empty(t, list.Continue)
}

func TestPage_ofNothingIsAnEmptyList(t *testing.T) {
	t.Parallel()
	list, err := page(t, nil)
	require.NoError(t, err)
	require.NotNil(t, list.Items)
	list, err = page(t, url.Values{"q": {"x"}}, item{"a", "1"})
	require.NoError(t, err)
	require.NotNil(t, list.Items)
	require.Empty(t, list.Items)
}

func TestPage_filtersByNameInAnyCase(t *testing.T) {
	t.Parallel()
	list, err := page(t, url.Values{"q": {"ÄR"}}, item{"Bär", "1"}, item{"bar", "2"}, item{"Ärger", "3"}, item{"x", "är"})
	require.NoError(t, err)
	require.Equal(t, []item{{"Bär", "1"}, {"Ärger", "3"}}, list.Items)
}

func many(n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{fmt.Sprintf("name %03d", i/3), fmt.Sprintf("%04d", i)}
	}
	return items
}

func TestPage_pagesTogetherAreTheWholeList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 6, 7, 8, 50} {
		var got []item
		query := url.Values{"limit": {"7"}}
		for range n/7 + 1 {
			list, err := page(t, query, many(n)...)
			require.NoError(t, err)
			require.LessOrEqual(t, len(list.Items), 7)
			got = append(got, list.Items...)
			if list.Continue == "" {
				break
			}
			query.Set("continue", list.Continue)
		}
		require.Len(t, got, n)
		if n > 0 {
			require.Equal(t, many(n), got)
		}
	}
}

func TestPage_continuesBehindAnItemThatIsGone(t *testing.T) {
	t.Parallel()
	items := []item{{"a", "1"}, {"b", "2"}, {"c", "3"}}
	first, err := page(t, url.Values{"limit": {"2"}}, items...)
	require.NoError(t, err)
	next, err := page(t, url.Values{"continue": {first.Continue}}, item{"a", "1"}, item{"b", "3"}, item{"c", "3"})
	require.NoError(t, err)
	require.Equal(t, []item{{"b", "3"}, {"c", "3"}}, next.Items)
}

func TestPage_continuesBehindANameWithANUL(t *testing.T) {
	t.Parallel()
	items := []item{{"a\x00b", "1"}, {"a\x00c", "2"}}
	first, err := page(t, url.Values{"limit": {"1"}}, items...)
	require.NoError(t, err)
	next, err := page(t, url.Values{"continue": {first.Continue}}, items[0], items[1])
	require.NoError(t, err)
	require.Equal(t, []item{{"a\x00c", "2"}}, next.Items)
}

func TestLimit_is100ByDefaultAndAtMost500(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]int{"": 100, "1": 1, "500": 500} {
		list, err := page(t, url.Values{"limit": {limit}}, many(600)...)
		require.NoError(t, err)
		require.Len(t, list.Items, want)
		require.NotEmpty(t, list.Continue)
	}
	for _, limit := range []string{"0", "-1", "501", "1.5", "ten", " 1", "99999999999999999999"} {
		_, err := page(t, url.Values{"limit": {limit}}, many(3)...)
		requireField(t, err, "query:limit")
	}
}

func TestPage_refusesAContinueThatItDidNotGive(t *testing.T) {
	t.Parallel()
	ask := func(target string) (rest.List[item], error) {
		return paging.Page(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody), many(9), key)
	}
	first, err := ask("/api/orgs?limit=2&q=name")
	require.NoError(t, err)
	given := first.Continue
	raw, err := base64.RawURLEncoding.DecodeString(given)
	require.NoError(t, err)
	raw[len(raw)-1]++
	for name, target := range map[string]string{
		"the same list":               "/api/orgs?limit=2&q=name&continue=" + given,
		"another limit":               "/api/orgs?limit=3&q=name&continue=" + given,
		"parameters in another order": "/api/orgs?continue=" + given + "&q=name",
	} {
		next, err := ask(target)
		require.NoError(t, err, name)
		require.Equal(t, many(9)[2], next.Items[0], name)
	}
	for name, target := range map[string]string{
		"no base64":                  "/api/orgs?q=name&continue=!",
		"padding":                    "/api/orgs?q=name&continue=====",
		"too short":                  "/api/orgs?q=name&continue=YQ",
		"a position without digest":  "/api/orgs?q=name&continue=" + base64.RawURLEncoding.EncodeToString([]byte("name 001\x000004")),
		"a digest without position":  "/api/orgs?q=name&continue=" + base64.RawURLEncoding.EncodeToString(make([]byte, 16)),
		"a position that was moved":  "/api/orgs?q=name&continue=" + base64.RawURLEncoding.EncodeToString(raw),
		"a token with an end more":   "/api/orgs?q=name&continue=" + given + "AA",
		"the token of another list":  "/api/orgs/x/workspaces?q=name&continue=" + given,
		"the token of another query": "/api/orgs?q=nam&continue=" + given,
		"the token of no query":      "/api/orgs?continue=" + given,
		"a filter more":              "/api/orgs?q=name&personal=true&continue=" + given,
	} {
		_, err := ask(target)
		require.Error(t, err, name)
		requireField(t, err, "query:continue")
	}
}

func TestWhole_refusesContinue(t *testing.T) {
	t.Parallel()
	require.NoError(t, paging.SinglePage(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?continue=&limit=1", http.NoBody)))
	requireField(t, paging.SinglePage(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?continue=a", http.NoBody)), "query:continue")
}

func requireField(t testing.TB, err error, field string) {
	t.Helper()
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.Invalid, e.Code)
	require.Equal(t, field, e.Causes[0].Field)
}

// FuzzPage checks that a query gets at most the maximum number of items. Any other answer
// is a refusal as invalid.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{"", "limit=3", "q=00&limit=2&continue=bmFtZSAwMDEAMDAwNA", "continue=%00", "limit=;", "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := &http.Request{URL: &url.URL{RawQuery: query}}
		list, err := paging.Page(r, many(600), key)
		if err != nil {
			require.True(t, errs.Is(err, errs.Invalid))
			return
		}
		require.LessOrEqual(t, len(list.Items), 500)
	})
}

// A list of encoded items is what the list of the items is, to the byte, and says how long it is.
func TestWriteEncoded_writesWhatWriteDoes(t *testing.T) {
	t.Parallel()
	named := func(names ...string) (items []map[string]string) {
		for i, name := range names {
			items = append(items, map[string]string{"displayName": name, "uuid": strconv.Itoa(i)})
		}
		return items
	}
	for name, test := range map[string]struct {
		query string
		items []map[string]string
	}{
		"nothing":      {"", nil},
		"some":         {"", named("Über <b>&\u2028", "Acme")},
		"a first page": {"?limit=1", named("Acme", "Beta")},
		"a filter":     {"?q=BET", named("Acme", "Beta")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var encoded []paging.Encoded
			for _, i := range test.items {
				raw, err := httpapi.Encode(i)
				require.NoError(t, err)
				encoded = append(encoded, paging.Encoded{DisplayName: i["displayName"], UUID: i["uuid"], JSON: raw})
			}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/orgs"+test.query, http.NoBody)
			want, got := httptest.NewRecorder(), httptest.NewRecorder()
			require.NoError(t, paging.Write(want, request, test.items, func(i map[string]string) (string, string) {
				return i["displayName"], i["uuid"]
			}))
			require.NoError(t, paging.WriteEncoded(got, request, encoded))
			require.Equal(t, want.Body.String(), got.Body.String())
			require.Equal(t, want.Header(), got.Header())
			require.Equal(t, strconv.Itoa(got.Body.Len()), got.Header().Get("Content-Length"))
		})
	}
}
