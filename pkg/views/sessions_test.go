package views

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func session(name, user string, hashes ...string) *v1alpha1.Session {
	s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Annotations: map[string]string{"kcp.io/cluster": "u"}}}
	s.Spec.UserRef.Name = user
	for _, h := range hashes {
		s.Spec.Tokens = append(s.Spec.Tokens, v1alpha1.SessionToken{Hash: h})
	}
	return s
}

func sessionNames(in []*v1alpha1.Session) (names []string) {
	for _, s := range in {
		names = append(names, s.Name)
	}
	return names
}

func TestSessions_areFoundByNameUserAndToken(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	told := v.Sessions.handle
	a, b, c := session("a", "alice", "1", "2"), session("b", "alice", "2"), session("c", "bob")
	for _, s := range []*v1alpha1.Session{a, b, c} {
		told(nil, s)
	}
	found, ok := v.Session("a")
	require.True(t, ok)
	require.Same(t, a, found)
	require.Equal(t, 3, v.Sessions.objects())
	require.ElementsMatch(t, []string{"a", "b"}, sessionNames(v.SessionsOf("alice")))
	held := v.SessionsOfToken("2")
	require.ElementsMatch(t, []string{"a", "b"}, sessionNames(held))
	require.Equal(t, []string{"a"}, sessionNames(v.SessionsOfToken("1")))

	later := session("a", "alice", "2", "3")
	told(a, later)
	require.Empty(t, v.SessionsOfToken("1"), "the token has expired")
	require.Equal(t, []string{"a"}, sessionNames(v.SessionsOfToken("3")))
	told(later, nil)
	told(b, nil)
	require.Empty(t, v.SessionsOf("alice"))
	require.Empty(t, v.tokens.first, "nothing is left of them")
	require.Len(t, held, 2, "readers keep what they have")
	require.Equal(t, []string{"c"}, sessionNames(v.SessionsOf("bob")))
}

// A tenant can have the API of Sessions bound nowhere, and the hub trusts one place only.
func TestSessions_ofAnotherClusterAreIgnored(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	planted := session("a", "alice", "1")
	planted.Annotations["kcp.io/cluster"] = "tenant"
	told := v.Sessions.handle
	told(nil, planted)
	require.Zero(t, v.Sessions.objects())
	told(nil, session("a", "alice", "1"))
	require.Equal(t, 1, v.Sessions.objects())
}

func TestSessions_wakeThoseWhoWait(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	told := v.Sessions.handle
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, ref := range []tenancy.Ref{tenancy.SessionRef("a"), tenancy.UserRef("alice")} {
		asked := 0
		require.NoError(t, v.Await(ctx, []tenancy.Ref{ref}, func() bool {
			// It is asked before and after it is registered, and then once for each change.
			if asked++; asked == 2 {
				go told(nil, session("a", "alice"))
			}
			return asked == 3
		}))
	}
}

func TestTransform_dropsTheSecretsOfASession(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	s := session("a", "alice", "1")
	s.Spec.IDToken, s.Spec.Rotations = []byte("sealed"), []v1alpha1.SessionRotation{{Generation: 1}}
	s.Spec.Groups = []string{"ops"}
	v.Sessions.transform(s)
	require.Empty(t, s.Spec.IDToken)
	require.Empty(t, s.Spec.Rotations)
	require.Equal(t, []string{"ops"}, s.Spec.Groups)
	require.Len(t, s.Spec.Tokens, 1)
}
