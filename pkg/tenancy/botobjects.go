package tenancy

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

const (
	// botTokenPrefix begins the names of the Secrets that tokens of Bots are bound to. The ID
	// of the token follows. Tenants cannot bind a token to such a Secret.
	botTokenPrefix = "kedge-bot-token-" //nolint:gosec // it begins a name and is no credential
	// botTokenType is the type of these Secrets. They hold no data.
	botTokenType corev1.SecretType = v1alpha1.GroupName + "/bot-token"
)

// BotAccount returns the ServiceAccount of a Bot in its Workspace.
func BotAccount(b *v1alpha1.Bot) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: botObject(b, b.Name), AutomountServiceAccountToken: ptr.To(false)}
	a.Namespace = DefaultNamespace
	a.Annotations = map[string]string{
		v1alpha1.DisplayNameAnnotation: b.Spec.DisplayName, v1alpha1.RoleAnnotation: string(b.Spec.Role),
	}
	if at := b.Status.LastTokenIssuedAt; at != nil {
		a.Annotations[v1alpha1.LastTokenIssuedAtAnnotation] = at.UTC().Format(time.RFC3339)
	}
	return a
}

// BotTokenSecret returns the Secret that a token of a Bot is bound to.
func BotTokenSecret(b *v1alpha1.Bot, token string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: botObject(b, botTokenPrefix+token), Type: botTokenType}
	s.Namespace = DefaultNamespace
	return s
}

// BotBinding returns the binding of a Bot to the ClusterRole of its role. account is the UID
// of its ServiceAccount, which owns the binding.
func BotBinding(b *v1alpha1.Bot, account string) *rbacv1.ClusterRoleBinding {
	role := clusterRoleOf(b.Spec.Role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: botObject(b, botBindingName(b.Spec.Role, b.Name)),
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: b.Name, Namespace: DefaultNamespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	binding.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: rbacv1.ServiceAccountKind, Name: b.Name, UID: types.UID(account)}}
	return binding
}

func botBindingName(role v1alpha1.Role, bot string) string {
	return clusterRoleOf(role) + ":bot:" + bot
}

// RoleToAuthorize returns the value of status.authorizedRole before a Bot is bound to its role.
func RoleToAuthorize(b *v1alpha1.Bot) v1alpha1.Role {
	if RoleLowered(b) {
		return b.Status.AuthorizedRole
	}
	return b.Spec.Role
}

// RoleLowered reports whether kcp may authorize a Bot by a higher role than its own.
func RoleLowered(b *v1alpha1.Bot) bool { return Lowers(b.Status.AuthorizedRole, b.Spec.Role) }

// FormerBotRole is the role by which kcp may authorize a Bot, in the form of RoleName.
func FormerBotRole(b *v1alpha1.Bot) string { return clusterRoleOf(b.Status.AuthorizedRole) }

// HigherBindings are the names of the bindings that a Bot had if its role was lowered.
func HigherBindings(b *v1alpha1.Bot) (names []string) {
	for _, r := range v1alpha1.Roles() {
		if Lowers(r, b.Spec.Role) {
			names = append(names, botBindingName(r, b.Name))
		}
	}
	return names
}

// IncludesBot reports whether a subject of a binding in a namespace, which is empty for a
// ClusterRoleBinding, is a Bot or a group that it is in.
func IncludesBot(s rbacv1.Subject, namespace, bot string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Name == bot && cmp.Or(s.Namespace, namespace) == DefaultNamespace
	case rbacv1.GroupKind:
		return s.Name == "system:authenticated" || slices.Contains(botGroups(), s.Name)
	}
	return s.Name == BotUsername(bot)
}

func botObject(b *v1alpha1.Bot, name string) metav1.ObjectMeta {
	meta := managed(name)
	meta.Labels[v1alpha1.BotAccountLabel] = "true"
	meta.Labels[v1alpha1.BotLabel] = b.Name
	return meta
}

// MadeForBot reports whether the hub made a ServiceAccount for the Bot of that name. Tenants
// cannot set the labels.
func MadeForBot(o metav1.Object, name string) bool { return ManagedByHub(o) && OfBot(o, name) }

// OfBot reports whether an object is derived from the Bot of that name.
func OfBot(o metav1.Object, name string) bool { return o.GetLabels()[v1alpha1.BotLabel] == name }

// SameBotAccount reports whether the cache has the ServiceAccount as desired.
func SameBotAccount(have, want *corev1.ServiceAccount) bool {
	return covers(have.Labels, want.Labels) && covers(have.Annotations, want.Annotations) &&
		have.Annotations[v1alpha1.LastTokenIssuedAtAnnotation] == want.Annotations[v1alpha1.LastTokenIssuedAtAnnotation]
}

func covers(have, want map[string]string) bool {
	for key, value := range want {
		if held, ok := have[key]; !ok || held != value {
			return false
		}
	}
	return true
}

// TokenOfSecret returns the ID of the token that a Secret of a Bot is for. ok is false for
// another Secret.
func TokenOfSecret(s metav1.Object) (id string, ok bool) {
	name := s.GetName()
	if len(name) <= len(botTokenPrefix) || name[:len(botTokenPrefix)] != botTokenPrefix {
		return "", false
	}
	return name[len(botTokenPrefix):], true
}

// KeptTokens returns the tokens of a Bot that stay in its spec: those that have not expired
// and are bound to a Secret, or may still become so, and those of jobs that are still trusted. secret
// returns the UID of the Secret of a token, or the empty string if it does not exist.
func KeptTokens(b *v1alpha1.Bot, now time.Time, issuers []string, secret func(id string) (uid string)) []v1alpha1.BotToken {
	return slices.DeleteFunc(LivingTokens(b, now), func(t v1alpha1.BotToken) bool {
		if !Trusted(b, t, issuers) {
			return true
		}
		if t.SecretUID == "" {
			return now.Sub(t.CreatedAt.Time) >= BotWriteTime
		}
		return secret(t.ID) != t.SecretUID
	})
}

// NextTokenChange returns the time until KeptTokens drops another token because of its age.
// It is zero if the Bot has no tokens.
func NextTokenChange(tokens []v1alpha1.BotToken, now time.Time) time.Duration {
	var next time.Duration
	for _, t := range tokens {
		at := t.ExpiresAt.Time
		if t.SecretUID == "" {
			at = t.CreatedAt.Add(BotWriteTime)
		}
		if left := max(at.Sub(now), time.Second); next == 0 || left < next {
			next = left
		}
	}
	return next
}

// LastIssued returns the time at which the last of the tokens was issued, or the known one if
// that is later.
func LastIssued(tokens []v1alpha1.BotToken, known *metav1.Time) *metav1.Time {
	for i := range tokens {
		if t := &tokens[i]; t.SecretUID != "" && (known == nil || known.Before(&t.CreatedAt)) {
			known = t.CreatedAt.DeepCopy()
		}
	}
	return known
}
