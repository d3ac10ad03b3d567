package views

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestSearch_findsTheFirstActiveUsersByName(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := v.Users.handle
	for i := range 50 {
		u := user("u", fmt.Sprintf("person-%02d", i), fmt.Sprint(i), 1)
		u.Spec.DisplayName, u.Spec.Registration = fmt.Sprintf("ÄNNE Number %02d", i), v1alpha1.RegistrationApproved
		if i%2 == 1 {
			u.Spec.Registration = v1alpha1.RegistrationPending
		}
		change(nil, u)
	}
	names := func(query string, limit int) (names []string) {
		for _, u := range v.SearchPeople(query, limit) {
			names = append(names, u.Name)
		}
		return names
	}
	require.Equal(t, []string{"person-00", "person-02", "person-04"}, names("person", 3))
	require.Equal(t, []string{"person-00", "person-02", "person-04"}, names("änne", 3), "by display name, in whatever case")
	require.Equal(t, []string{"person-40", "person-42", "person-44", "person-46", "person-48"}, names("Number 4", 20))
	require.Equal(t, []string{"person-08"}, names("-08", 1))
	require.Empty(t, names("person-01", 20), "who cannot act")
	require.Empty(t, names("nobody", 20))
	require.Empty(t, names("person", 0))
	require.Len(t, names("person", 100), 25)
}

func FuzzHoldsLower(f *testing.F) {
	for _, s := range [][2]string{{"Ünïted", "NÏT"}, {"", ""}, {"a", ""}, {"", "a"}, {"aab", "ab"}, {"İ", "i"}, {"K", "k"}, {"\xff", "\ufffd"}, {"\ufffd", "\xff"}, {"ß", "SS"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, s, query string) {
		query = strings.ToLower(query)
		require.Equal(t, strings.Contains(strings.ToLower(s), query), containsLower(s, query))
	})
}
