package views

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func viewedBot(name, workspace, account string) *v1alpha1.Bot {
	b := at("org", &v1alpha1.Bot{})
	b.Name, b.Spec.WorkspaceRef.Name, b.Status.ServiceAccountUID = name, workspace, account
	return b
}

func TestBots_areFoundByWorkspaceAndAccount(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := v.Bots.handle
	first, second := viewedBot("a", "w", "1"), viewedBot("b", "w", "")
	change(nil, first)
	change(nil, second)
	change(nil, viewedBot("c", "other", "3"))
	require.Len(t, v.BotsAt("org", "w"), 2)
	require.Empty(t, v.BotsAt("org2", "w"))
	require.Equal(t, 3, v.Bots.objects())
	got, ok := v.BotOfAccount("1")
	require.True(t, ok)
	require.Equal(t, "a", got.Name)
	_, ok = v.BotOfAccount("")
	require.False(t, ok, "a Bot without an account has no key")

	replaced := viewedBot("a", "w", "2")
	change(first, replaced)
	_, ok = v.BotOfAccount("1")
	require.False(t, ok, "the account was replaced")
	_, ok = v.BotOfAccount("2")
	require.True(t, ok)
	change(replaced, nil)
	_, ok = v.BotOfAccount("2")
	require.False(t, ok)
	require.Len(t, v.BotsAt("org", "w"), 1)
}

// The caches have no data of a Secret, whatever a tenant puts into it.
func TestBotSecrets_holdNoData(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{
		Name: "kedge-bot-token-1", Namespace: "default", UID: "uid", ResourceVersion: "7",
		Labels: map[string]string{v1alpha1.BotLabel: "bot"}, Finalizers: []string{"a/b"},
		Annotations: map[string]string{"kcp.io/cluster": "ws", "mine": "hush", v1alpha1.RoleAnnotation: "member"},
	}
	s := &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Data: map[string][]byte{"token": []byte("hush")}, StringData: map[string]string{"token": "hush"}}
	compactSecret(s)
	a := &corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy(), Secrets: []corev1.ObjectReference{{Name: "hush"}}}
	compactServiceAccount(a)
	for _, o := range []metav1.Object{s, a} {
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		require.NotContains(t, string(raw), "hush")
		require.Equal(t, []string{"kedge-bot-token-1", "default", "uid", "7"}, []string{o.GetName(), o.GetNamespace(), string(o.GetUID()), o.GetResourceVersion()})
		require.Equal(t, "bot", o.GetLabels()[v1alpha1.BotLabel])
		require.Equal(t, "member", o.GetAnnotations()[v1alpha1.RoleAnnotation])
	}
}
