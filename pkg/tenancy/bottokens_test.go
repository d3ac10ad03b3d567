package tenancy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestSuccessor_livesNoLongerThanTheOldToken(t *testing.T) {
	t.Parallel()
	old := v1alpha1.BotToken{ID: "old", Name: "nightly", CreatedAt: metav1.NewTime(botTime.Add(-80 * time.Hour)), ExpiresAt: metav1.NewTime(botTime.Add(20 * time.Hour))}
	made := tenancy.Successor(old, "new", 1000*time.Hour, botTime)
	require.Equal(t, v1alpha1.BotToken{
		ID: "new", Name: "nightly", CreatedAt: metav1.NewTime(botTime), ExpiresAt: metav1.NewTime(botTime.Add(100 * time.Hour)),
	}, made, "as a whole")
	made = tenancy.Successor(old, "new", 50*time.Hour, botTime)
	require.Equal(t, botTime.Add(50*time.Hour), made.ExpiresAt.Time, "the operator has lowered the longest life")
	old.Trust = "rule"
	made = tenancy.Successor(old, "new", 1000*time.Hour, botTime)
	require.Equal(t, old.ExpiresAt, made.ExpiresAt, "a job cannot make a token outlive its ID token")
	require.Equal(t, "rule", made.Trust, "and it ends with the rule")
	old.ExpiresAt = metav1.NewTime(botTime.Add(time.Minute))
	require.Equal(t, tenancy.MinBotTokenTTL, tenancy.LifeToIssue(tenancy.Successor(old, "new", time.Hour, botTime)))
}

func TestRotated_refusesWhatWasRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	old, made := botToken("old", "s1", time.Hour, time.Hour), botToken("new", "s2", 0, time.Hour)
	pending := made
	pending.SecretUID = ""
	again := old
	again.RotatedTo = "another"
	ended := botToken("old", "s1", 2*time.Hour, -time.Minute)
	for name, c := range map[string]struct {
		tokens []v1alpha1.BotToken
		code   errs.Code
	}{
		"the old token":         {[]v1alpha1.BotToken{made}, errs.NotFound},
		"the new token":         {[]v1alpha1.BotToken{old}, errs.Conflict},
		"not issued yet":        {[]v1alpha1.BotToken{old, pending}, errs.Conflict},
		"rotated by others":     {[]v1alpha1.BotToken{again, made}, errs.Conflict},
		"the old one has ended": {[]v1alpha1.BotToken{ended, made}, errs.NotFound},
	} {
		_, err := tenancy.Rotated(readyBot(c.tokens...), "old", "new", time.Minute, botTime)
		require.True(t, errs.Is(err, c.code), "%s: %v", name, err)
	}
	b := readyBot(old, made)
	for range 2 {
		tokens, err := tenancy.Rotated(b, "old", "new", time.Minute, botTime)
		require.NoError(t, err, "and again after a lost answer")
		b.Spec.Tokens = tokens
		require.Equal(t, "new", tokens[0].RotatedTo)
		require.Equal(t, botTime.Add(time.Minute), tokens[0].ExpiresAt.Time)
	}
	later := readyBot(old, made)
	tokens, err := tenancy.Rotated(later, "old", "new", 24*time.Hour, botTime)
	require.NoError(t, err)
	require.Equal(t, old.ExpiresAt, tokens[0].ExpiresAt, "a rotation gives the old token no longer life")
}

// A bot at its limits can still rotate, and cannot collect tokens by it.
func TestAddSuccessor_countsRotatedTokensByThemselves(t *testing.T) {
	t.Parallel()
	made := v1alpha1.BotToken{ID: "new", CreatedAt: metav1.NewTime(botTime), ExpiresAt: metav1.NewTime(botTime.Add(time.Hour))}
	b := readyBot()
	for i := range tenancy.MaxBotTokens {
		b.Spec.Tokens = append(b.Spec.Tokens, botToken(fmt.Sprint("token-", i), "s", time.Hour, time.Hour))
	}
	_, err := tenancy.AddToken(b, made, botTime)
	require.True(t, tenancy.IsQuota(err))
	tokens, err := tenancy.AddSuccessor(b, "token-3", made, botTime)
	require.NoError(t, err)
	require.Len(t, tokens, tenancy.MaxBotTokens+1)
	_, err = tenancy.AddSuccessor(b, "nothing", made, botTime)
	require.True(t, errs.Is(err, errs.NotFound))
	for i := range b.Spec.Tokens {
		b.Spec.Tokens[i].RotatedTo = "successor"
	}
	_, err = tenancy.AddToken(b, made, botTime)
	require.NoError(t, err, "a rotated token takes no place")
	b.Spec.Tokens = append(b.Spec.Tokens, botToken("one", "s", time.Hour, time.Hour))
	_, err = tenancy.AddSuccessor(b, "one", made, botTime)
	require.True(t, tenancy.IsQuota(err), "20 rotated ones are enough")
	b.Status.ServiceAccountUID = ""
	_, err = tenancy.AddSuccessor(b, "one", made, botTime)
	require.True(t, errs.Is(err, errs.Conflict))
}

func TestRecordTokenUses_writesAtMostOnceAnHour(t *testing.T) {
	t.Parallel()
	b := readyBot(botToken("a", "s", time.Hour, time.Hour), botToken("b", "s", time.Hour, time.Hour))
	require.True(t, tenancy.TokenUseDue(b, "a", botTime))
	tenancy.RecordTokenUses(b, map[string]time.Time{"a": botTime, "revoked": botTime})
	require.Equal(t, []v1alpha1.BotTokenStatus{{ID: "a", LastUsedAt: metav1.NewTime(botTime)}}, b.Status.Tokens)
	for after, due := range map[time.Duration]bool{time.Minute: false, 59 * time.Minute: false, time.Hour: true} {
		require.Equal(t, due, tenancy.TokenUseDue(b, "a", botTime.Add(after)), after)
	}
	tenancy.RecordTokenUses(b, map[string]time.Time{"a": botTime.Add(time.Minute)})
	require.Equal(t, botTime, tenancy.TokenUse(b, "a").Time, "another replica has written one")
	require.Nil(t, tenancy.TokenUse(b, "b"))
	b.Spec.Tokens = b.Spec.Tokens[1:]
	require.Empty(t, tenancy.TokenStatusOf(b))
}

func TestNextTokenEnd_isOfTheFirstTokenThatIsToBeRotated(t *testing.T) {
	t.Parallel()
	job, rotated := botToken("job", "s1", time.Hour, time.Minute), botToken("rotated", "s2", time.Hour, time.Minute)
	job.Trust, rotated.RotatedTo = "rule", "next"
	others := []v1alpha1.BotToken{job, rotated, botToken("ended", "s3", 2*time.Hour, -time.Minute)}
	require.Nil(t, tenancy.NextTokenEnd(readyBot(others...), botTime))
	require.Zero(t, tenancy.TokensEndingSoon(readyBot(others...), botTime))
	held := append(others, botToken("later", "s4", time.Hour, 8*24*time.Hour), botToken("soon", "s5", time.Hour, 3*time.Hour))
	require.Equal(t, botTime.Add(3*time.Hour), tenancy.NextTokenEnd(readyBot(held...), botTime).Time)
	require.Equal(t, 1, tenancy.TokensEndingSoon(readyBot(held...), botTime))
}

func TestCheckRotationGrace_namesTheField(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int64{-1, 86401} {
		_, err := tenancy.CheckRotationGrace("gracePeriodSeconds", &seconds)
		require.ErrorContains(t, err, "gracePeriodSeconds")
	}
	grace, err := tenancy.CheckRotationGrace("gracePeriodSeconds", nil)
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, grace)
}
