package views

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestInvitations_areFoundByNameAndAddress(t *testing.T) {
	t.Parallel()
	i := newInvitations()
	held := func(name, email string) *v1alpha1.Invitation {
		o := at("org", &v1alpha1.Invitation{Spec: v1alpha1.InvitationSpec{Email: email}})
		o.Name = name
		return o
	}
	change := func(old, new *v1alpha1.Invitation) {
		for _, x := range i.indexes() {
			x.update(old, new)
		}
	}
	first, second := held("a", "jane@example.com"), held("b", "")
	change(nil, first)
	change(nil, second)
	got, ok := i.Invitation("b")
	require.True(t, ok)
	require.Same(t, second, got)
	require.Equal(t, []*v1alpha1.Invitation{first}, i.InvitationsFor("jane@example.com"))
	require.Empty(t, i.InvitationsFor(""), "an invitation without an address is for nobody's")
	change(first, nil)
	require.Empty(t, i.InvitationsFor("jane@example.com"))
	_, ok = i.Invitation("a")
	require.False(t, ok)
}
