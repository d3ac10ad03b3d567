package tenancy

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// TokenEndsSoon is the time before the end of a token within which a metric counts it.
	TokenEndsSoon = 7 * 24 * time.Hour

	// maxRotatedTokens is the number of rotated tokens of a Bot that still work. They count for no
	// other limit.
	maxRotatedTokens = 20
	// DefaultRotationGrace is the time for which a rotated token still works, and maxRotationGrace the
	// longest one.
	DefaultRotationGrace = 10 * time.Minute
	maxRotationGrace     = 24 * time.Hour

	// usedAgain is the interval after which the use of a token is recorded again.
	usedAgain = time.Hour
)

// NoSuchToken is the answer for a token that a Bot does not list.
func NoSuchToken() error { return errs.New(errs.NotFound, "this bot has no token of that ID") }

// CheckRotationGrace returns the time for which a rotated token still works. given is nil if the request
// does not say it.
func CheckRotationGrace(field string, given *int64) (time.Duration, error) {
	if given == nil {
		return DefaultRotationGrace, nil
	}
	if most := int64(maxRotationGrace / time.Second); *given < 0 || *given > most {
		return 0, errs.UnprocessableField(field, fmt.Sprintf("must be a number of seconds from 0 to %d", most))
	}
	return time.Duration(*given) * time.Second, nil
}

// Successor is the token that replaces a token of a Bot. It lives no longer than that one did as a whole.
// That of a job ends with it: a job cannot make a token outlive its ID token.
func Successor(old v1alpha1.BotToken, id string, longest time.Duration, now time.Time) v1alpha1.BotToken {
	now = now.UTC().Truncate(time.Second)
	t := v1alpha1.BotToken{ID: id, Name: old.Name, CreatedAt: metav1.NewTime(now), ExpiresAt: old.ExpiresAt, Trust: old.Trust}
	if old.Trust == "" {
		t.ExpiresAt = metav1.NewTime(now.Add(min(longest, old.ExpiresAt.Sub(old.CreatedAt.Time))))
	}
	return t
}

// LifeToIssue is the life of a token that kcp is asked for. kcp issues none for less than
// MinBotTokenTTL; the hub refuses a token at the end that the Bot lists.
func LifeToIssue(t v1alpha1.BotToken) time.Duration {
	return max(t.ExpiresAt.Sub(t.CreatedAt.Time), MinBotTokenTTL)
}

// rotatable returns a token of a Bot that can be rotated. A rotated token is not rotated again: otherwise
// a token that was copied before could be made into a new one while it still works.
func rotatable(b *v1alpha1.Bot, id string, now time.Time) (v1alpha1.BotToken, error) {
	t, ok := FindToken(LivingTokens(b, now), id)
	switch {
	case !ok || t.SecretUID == "":
		return t, NoSuchToken()
	case t.RotatedTo != "":
		return t, errs.New(errs.Conflict, "this token was rotated already: the token "+t.RotatedTo+" replaces it",
			errs.Cause{Type: "TokenRotated", Message: t.RotatedTo})
	}
	return t, nil
}

// AddSuccessor is AddToken for a token that is to replace another one, which does not count any more.
func AddSuccessor(b *v1alpha1.Bot, old string, t v1alpha1.BotToken, now time.Time) ([]v1alpha1.BotToken, error) {
	if !AccountReady(b) {
		return nil, errs.New(errs.Conflict, "the bot is not ready yet; repeat the request when its phase is Ready")
	}
	if _, err := rotatable(b, old, now); err != nil {
		return nil, err
	}
	if err := issuedBefore(b, t.ID); err != nil {
		return nil, err
	}
	living, rotated := LivingTokens(b, now), 0
	for _, held := range living {
		if held.RotatedTo != "" {
			rotated++
		}
	}
	if err := checkQuota(maxRotatedTokens, rotated,
		"this bot has %d of at most %d rotated tokens that still work; wait until one has ended, or revoke it"); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(living), func(held v1alpha1.BotToken) bool { return held.ID == old })
	if _, err := withToken(others, t); err != nil {
		return nil, err
	}
	return append(living, t), nil
}

// Rotated returns the tokens of a Bot after a token was replaced by another one: from then on it ends after
// grace. It refuses if one of the two was revoked meanwhile.
func Rotated(b *v1alpha1.Bot, old, to string, grace time.Duration, now time.Time) ([]v1alpha1.BotToken, error) {
	tokens := slices.Clone(b.Spec.Tokens)
	i := slices.IndexFunc(tokens, func(t v1alpha1.BotToken) bool { return t.ID == old })
	if i >= 0 && tokens[i].RotatedTo == to {
		// An attempt whose answer was lost has done it.
		return tokens, nil
	}
	_, err := rotatable(b, old, now)
	if issued, ok := FindToken(tokens, to); err == nil && (!ok || issued.SecretUID == "") {
		err = errs.New(errs.Conflict, "the token was revoked while it was being issued; repeat the request")
	}
	if err != nil {
		return nil, err
	}
	tokens[i].RotatedTo = to
	if end := metav1.NewTime(now.Add(grace).UTC().Truncate(time.Second)); end.Before(&tokens[i].ExpiresAt) {
		tokens[i].ExpiresAt = end
	}
	return tokens, nil
}

// TokenUse returns the recorded use of a token, or nil.
func TokenUse(b *v1alpha1.Bot, id string) *metav1.Time {
	if i := slices.IndexFunc(b.Status.Tokens, func(s v1alpha1.BotTokenStatus) bool { return s.ID == id }); i >= 0 {
		return &b.Status.Tokens[i].LastUsedAt
	}
	return nil
}

// TokenUseDue reports whether a use of a token is to be recorded.
func TokenUseDue(b *v1alpha1.Bot, id string, now time.Time) bool {
	last := TokenUse(b, id)
	return last == nil || now.Sub(last.Time) >= usedAgain
}

// RecordTokenUses records uses of tokens that the Bot lists, where they are due.
func RecordTokenUses(b *v1alpha1.Bot, uses map[string]time.Time) {
	for _, t := range b.Spec.Tokens {
		at, ok := uses[t.ID]
		if !ok || !TokenUseDue(b, t.ID, at) {
			continue
		}
		i := slices.IndexFunc(b.Status.Tokens, func(s v1alpha1.BotTokenStatus) bool { return s.ID == t.ID })
		if i < 0 {
			b.Status.Tokens, i = append(b.Status.Tokens, v1alpha1.BotTokenStatus{ID: t.ID}), len(b.Status.Tokens)
		}
		b.Status.Tokens[i].LastUsedAt = metav1.NewTime(at).Rfc3339Copy()
	}
}

// TokenStatusOf returns the status of the tokens that a Bot lists.
func TokenStatusOf(b *v1alpha1.Bot) []v1alpha1.BotTokenStatus {
	return slices.DeleteFunc(slices.Clone(b.Status.Tokens), func(s v1alpha1.BotTokenStatus) bool {
		_, ok := FindToken(b.Spec.Tokens, s.ID)
		return !ok
	})
}

// isToRotate reports whether somebody has to rotate a token before it ends: it was not replaced, and it is
// none of a job, which always ends soon.
func isToRotate(t v1alpha1.BotToken) bool { return t.Trust == "" && t.RotatedTo == "" }

// TokensEndingSoon counts the living tokens of a Bot that end within TokenEndsSoon and are to be rotated.
func TokensEndingSoon(b *v1alpha1.Bot, now time.Time) (n int) {
	for _, t := range LivingTokens(b, now) {
		if isToRotate(t) && t.ExpiresAt.Sub(now) < TokenEndsSoon {
			n++
		}
	}
	return n
}

// NextTokenEnd returns the end of the first living token of a Bot that is to be rotated, or nil.
func NextTokenEnd(b *v1alpha1.Bot, now time.Time) (next *metav1.Time) {
	for _, t := range LivingTokens(b, now) {
		if isToRotate(t) && (next == nil || t.ExpiresAt.Before(next)) {
			next = &t.ExpiresAt
		}
	}
	return next
}
