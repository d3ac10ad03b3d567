package tenancy

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxBots is the number of Bots that a Workspace can have (O-14).
	MaxBots = 100
	// MaxBotTokens is the number of living tokens that a Bot can have (O-14), beside those of jobs.
	MaxBotTokens = 20
	// MinBotTokenTTL is the shortest life of a token of a Bot. kcp accepts no shorter one.
	MinBotTokenTTL = 10 * time.Minute
	// DefaultBotTokenTTL is the life of a token whose request does not say one.
	DefaultBotTokenTTL = 365 * 24 * time.Hour
	// BotAudience is the audience that every token of a Bot has besides kcp's own.
	BotAudience = "kedge"

	// BotWriteTime is the time after which a write that was begun for a Bot has ended. What
	// it left behind can then be removed.
	BotWriteTime = 2 * time.Minute
)

// NewBot returns a Bot of a Workspace. keyHash is the hash of the Idempotency-Key of the
// request, or empty.
func NewBot(uuid, workspace, displayName string, role v1alpha1.Role, createdBy, keyHash string) *v1alpha1.Bot {
	b := &v1alpha1.Bot{Spec: v1alpha1.BotSpec{
		WorkspaceRef: v1alpha1.NamedRef{Name: workspace}, DisplayName: displayName, Role: role,
	}}
	b.Name = uuid
	b.Finalizers = []string{v1alpha1.CascadeFinalizer}
	b.Annotations = map[string]string{v1alpha1.CreatedByAnnotation: createdBy}
	if keyHash != "" {
		b.Labels = map[string]string{v1alpha1.IdempotencyKeyLabel: keyHash}
	}
	return b
}

// NoSuchBot is the one answer for a Bot that does not exist and for a Bot of another
// Workspace.
func NoSuchBot() error {
	return errs.New(errs.NotFound, "this workspace has no bot of that ID")
}

// ClaimBot returns the value of BotClaimsAnnotation with which the Workspace may get one Bot
// more, or the empty string if the Bot is claimed or exists. existing are the UUIDs of the
// Bots in the cache. A claim counts for BotWriteTime: by then the Bot exists and the caches
// have it, or it is not created any more.
func ClaimBot(w Workspace, existing []string, uuid string, now time.Time) (annotation string, err error) {
	claims := livingClaims(w, now)
	if _, ok := claims[uuid]; ok || slices.Contains(existing, uuid) {
		return "", nil
	}
	used := len(claims)
	for _, name := range existing {
		if _, ok := claims[name]; !ok {
			used++
		}
	}
	if err := checkQuota(MaxBots, used, "this workspace has %d of at most %d bots; delete one that is not needed any more"); err != nil {
		return "", err
	}
	claims[uuid] = metav1.NewTime(now)
	return encodeClaims(claims)
}

// ReleaseBot returns the value of BotClaimsAnnotation without the claim of a Bot that is
// deleted. ok is false if it has none.
func ReleaseBot(w Workspace, uuid string, now time.Time) (annotation string, ok bool, err error) {
	claims := livingClaims(w, now)
	if _, ok := claims[uuid]; !ok {
		return "", false, nil
	}
	delete(claims, uuid)
	annotation, err = encodeClaims(claims)
	return annotation, true, err
}

func livingClaims(w Workspace, now time.Time) map[string]metav1.Time {
	claims := map[string]metav1.Time{}
	for uuid, at := range w.BotClaims {
		if now.Sub(at.Time) < BotWriteTime {
			claims[uuid] = at
		}
	}
	return claims
}

func encodeClaims(claims map[string]metav1.Time) (string, error) {
	raw, err := json.Marshal(claims)
	if err != nil {
		return "", errs.Wrap(errs.Internal, fmt.Errorf("encode the claims of bots: %w", err), "the bot could not be created")
	}
	return string(raw), nil
}

// botClaims decodes BotClaimsAnnotation. An invalid one counts as absent.
func botClaims(raw string) map[string]metav1.Time {
	if raw == "" {
		return nil
	}
	var claims map[string]metav1.Time
	if json.Unmarshal([]byte(raw), &claims) != nil {
		return nil
	}
	return claims
}

// CheckBotTokenTTL returns the life of a new token. given is nil if the request does not say
// one.
func CheckBotTokenTTL(field string, given *int64, longest time.Duration) (time.Duration, error) {
	if given == nil {
		return min(DefaultBotTokenTTL, longest), nil
	}
	shortest, most := int64(MinBotTokenTTL/time.Second), int64(longest/time.Second)
	if *given < shortest || *given > most {
		return 0, errs.UnprocessableField(field, fmt.Sprintf("must be a number of seconds from %d to %d", shortest, most))
	}
	return time.Duration(*given) * time.Second, nil
}

// LivingTokens returns the tokens of a Bot that have not expired.
func LivingTokens(b *v1alpha1.Bot, now time.Time) []v1alpha1.BotToken {
	return slices.DeleteFunc(slices.Clone(b.Spec.Tokens), func(t v1alpha1.BotToken) bool { return !now.Before(t.ExpiresAt.Time) })
}

// FindToken returns the token of a Bot with that ID.
func FindToken(tokens []v1alpha1.BotToken, id string) (v1alpha1.BotToken, bool) {
	return first(tokens, func(t v1alpha1.BotToken) bool { return t.ID == id })
}

// AccountReady reports whether the Bot has the ServiceAccount of its generation. Tokens can
// be issued and are accepted only then.
func AccountReady(b *v1alpha1.Bot) bool {
	return b.DeletionTimestamp.IsZero() && b.Status.ServiceAccountUID != "" && b.Status.ServiceAccountGeneration == b.Spec.Generation
}

// AddToken returns the living tokens of a Bot with one more. It refuses a token whose ID is
// there, because of an earlier request with the same key: a token is not given out again.
func AddToken(b *v1alpha1.Bot, t v1alpha1.BotToken, now time.Time) ([]v1alpha1.BotToken, error) {
	if !AccountReady(b) {
		return nil, errs.New(errs.Conflict, "the bot is not ready yet; repeat the request when its phase is Ready")
	}
	if err := issuedBefore(b, t.ID); err != nil {
		return nil, err
	}
	return withToken(LivingTokens(b, now), t)
}

// issuedBefore refuses the ID of a token that is there.
func issuedBefore(b *v1alpha1.Bot, id string) error {
	if held, ok := FindToken(b.Spec.Tokens, id); ok {
		cause := errs.Cause{Type: "TokenIssued", Field: "header:Idempotency-Key", Message: id}
		if held.SecretUID == "" {
			return errs.New(errs.Conflict, "a request with this Idempotency-Key is issuing the token "+id+", or was interrupted and has given out none; wait for its answer, or use another key", cause)
		}
		return errs.New(errs.Conflict, "a request with this Idempotency-Key has issued the token "+id+" already, and a token is shown once only; revoke it and use another key to get a new one", cause)
	}
	return nil
}

// withToken returns the living tokens of a Bot with one more, unless there are too many.
func withToken(living []v1alpha1.BotToken, t v1alpha1.BotToken) ([]v1alpha1.BotToken, error) {
	if t.Trust != "" {
		if err := checkQuota(MaxTrustedTokens, trustedTokens(living), "this bot has %d of at most %d living tokens of jobs"); err != nil {
			return nil, err
		}
		return append(living, t), nil
	}
	used := 0
	for _, held := range living {
		if held.Trust == "" && held.RotatedTo == "" {
			used++
		}
	}
	if err := checkQuota(MaxBotTokens, used, "this bot has %d of at most %d living tokens; revoke one that is not needed any more"); err != nil {
		return nil, err
	}
	return append(living, t), nil
}

// BindToken returns the tokens of a Bot with the Secret of one recorded. ok is false if the
// token was revoked since it was added.
func BindToken(b *v1alpha1.Bot, id, accountUID, secretUID string) (tokens []v1alpha1.BotToken, ok bool) {
	if !AccountReady(b) || b.Status.ServiceAccountUID != accountUID {
		return nil, false
	}
	tokens = slices.Clone(b.Spec.Tokens)
	i := slices.IndexFunc(tokens, func(t v1alpha1.BotToken) bool { return t.ID == id })
	if i < 0 {
		return nil, false
	}
	tokens[i].SecretUID = secretUID
	return tokens, true
}

// WithoutToken returns the tokens of a Bot without one. ok is false if it is not there.
func WithoutToken(b *v1alpha1.Bot, id string) (tokens []v1alpha1.BotToken, ok bool) {
	if _, ok := FindToken(b.Spec.Tokens, id); !ok {
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(b.Spec.Tokens), func(t v1alpha1.BotToken) bool { return t.ID == id }), true
}
