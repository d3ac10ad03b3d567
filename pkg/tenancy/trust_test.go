package tenancy_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	github = "https://token.actions.githubusercontent.com"
	gitlab = "https://gitlab.example.com"
	hubURL = "https://hub.example.com"
	// cluster is an identity provider whose tokens have no number of an owner.
	cluster = "https://kubernetes.example.com"
)

// rule is a rule about a job of GitHub, with other claims.
func rule(id string, claims map[string]v1alpha1.TrustedValue) v1alpha1.BotTrust {
	t := v1alpha1.BotTrust{ID: id, Issuer: github, CreatedBy: "alice", Claims: map[string]v1alpha1.TrustedValue{"repository": "octo/app", "repository_id": "42"}}
	for name, value := range claims {
		if t.Claims[name] = value; value == "" {
			delete(t.Claims, name)
		}
	}
	return t
}

// job is the job that rule lets in, with other claims.
func job(claims map[string]string) tenancy.Workload {
	w := tenancy.Workload{Issuer: github, Audience: []string{hubURL}, Claims: map[string]string{
		"sub": "repo:octo/app:ref:refs/heads/main", "repository": "octo/app", "repository_id": "42", "event_name": "push", "ref": "refs/heads/main",
	}}
	for name, value := range claims {
		w.Claims[name] = value
	}
	return w
}

func TestMismatch_letsInTheJobOfTheRuleAlone(t *testing.T) {
	t.Parallel()
	with := func(change func(*tenancy.Workload)) tenancy.Workload {
		w := job(nil)
		change(&w)
		return w
	}
	for name, c := range map[string]struct {
		rule v1alpha1.BotTrust
		job  tenancy.Workload
		want string
	}{
		"the job":                      {rule("r", nil), job(nil), ""},
		"another audience beside":      {rule("r", nil), with(func(w *tenancy.Workload) { w.Audience = []string{"other", hubURL} }), ""},
		"another issuer":               {rule("r", nil), with(func(w *tenancy.Workload) { w.Issuer = gitlab }), "iss"},
		"another audience":             {rule("r", nil), with(func(w *tenancy.Workload) { w.Audience = []string{"https://other.example.com"} }), "aud"},
		"another repository":           {rule("r", nil), job(map[string]string{"repository": "octo/other", "repository_id": "43"}), "repository"},
		"a new one of the old name":    {rule("r", nil), job(map[string]string{"repository_id": "43"}), "repository_id"},
		"the renamed one":              {rule("r", map[string]v1alpha1.TrustedValue{"repository": ""}), job(map[string]string{"repository": "octo/renamed"}), ""},
		"no environment":               {rule("r", map[string]v1alpha1.TrustedValue{"environment": "prod"}), job(nil), "environment"},
		"another environment":          {rule("r", map[string]v1alpha1.TrustedValue{"environment": "prod"}), job(map[string]string{"environment": "dev"}), "environment"},
		"a part of the value":          {rule("r", map[string]v1alpha1.TrustedValue{"ref": "refs/heads/ma"}), job(nil), "ref"},
		"another case":                 {rule("r", map[string]v1alpha1.TrustedValue{"ref": "refs/heads/Main"}), job(nil), "ref"},
		"a pull request":               {rule("r", nil), job(map[string]string{"event_name": "pull_request"}), "event_name"},
		"a pull request of a fork":     {rule("r", nil), job(map[string]string{"event_name": "pull_request_target"}), "event_name"},
		"a pull request that is named": {rule("r", map[string]v1alpha1.TrustedValue{"event_name": "pull_request"}), job(map[string]string{"event_name": "pull_request"}), ""},
		"a merge request":              {rule("r", nil), job(map[string]string{"pipeline_source": "merge_request_event"}), "pipeline_source"},
		"a push to GitLab":             {rule("r", nil), job(map[string]string{"pipeline_source": "push"}), ""},
	} {
		require.Equal(t, c.want, tenancy.Mismatch(c.rule, c.job, hubURL), name)
	}
	own := rule("r", nil)
	own.Audience = "kedge"
	require.Equal(t, "aud", tenancy.Mismatch(own, job(nil), hubURL))
}

func TestTrustedRule_saysWhyForEachRuleOfTheIssuer(t *testing.T) {
	t.Parallel()
	b := readyBot()
	other := rule("other issuer", nil)
	other.Issuer = gitlab
	b.Spec.Trust = []v1alpha1.BotTrust{rule("prod", map[string]v1alpha1.TrustedValue{"environment": "prod"}), rule("dev", map[string]v1alpha1.TrustedValue{"ref": "dev"}), other}
	_, refusals, ok := tenancy.TrustedRule(b, job(nil), hubURL)
	require.False(t, ok)
	require.Equal(t, map[string]string{"prod": "environment", "dev": "ref"}, refusals)
	found, _, ok := tenancy.TrustedRule(b, job(map[string]string{"environment": "prod"}), hubURL)
	require.True(t, ok)
	require.Equal(t, "prod", found.ID)

	tenancy.RecordRefusal(b, refusals, botTime)
	require.Equal(t, []v1alpha1.BotTrustStatus{
		{ID: "prod", LastRefusal: &v1alpha1.TrustRefusal{At: metav1.NewTime(botTime), Claim: "environment"}},
		{ID: "dev", LastRefusal: &v1alpha1.TrustRefusal{At: metav1.NewTime(botTime), Claim: "ref"}},
	}, b.Status.Trust)
	used := botToken("t", "secret", time.Minute, time.Hour)
	used.Trust = "dev"
	b.Spec.Tokens = append(b.Spec.Tokens, used)
	b.Spec.Trust = b.Spec.Trust[1:]
	status := tenancy.TrustStatusOf(b)
	require.Len(t, status, 1, "the status of a rule ends with the rule")
	require.Equal(t, used.CreatedAt, *status[0].LastUsedAt)
	require.Equal(t, "ref", status[0].LastRefusal.Claim)
}

func TestCheckTrust_refusesRulesThatGuess(t *testing.T) {
	t.Parallel()
	long := v1alpha1.TrustedValue(strings.Repeat("x", 513))
	many := map[string]v1alpha1.TrustedValue{"repository": ""}
	for i := range 16 {
		many["claim"+strconv.Itoa(i)] = "x"
	}
	only := func(claims map[string]v1alpha1.TrustedValue) v1alpha1.BotTrust {
		return v1alpha1.BotTrust{Issuer: github, Claims: claims}
	}
	for name, c := range map[string]struct {
		rule  v1alpha1.BotTrust
		field string
	}{
		"good": {rule("r", nil), ""},
		"sub of another provider": {v1alpha1.BotTrust{
			Issuer: cluster, Claims: map[string]v1alpha1.TrustedValue{"sub": "system:serviceaccount:ci:deploy"},
		}, ""},
		"a repository by number":    {only(map[string]v1alpha1.TrustedValue{"repository_id": "42"}), ""},
		"an issuer not allowed":     {v1alpha1.BotTrust{Issuer: "https://evil.example.com", Claims: rule("r", nil).Claims}, "issuer"},
		"no claims":                 {only(nil), "claims"},
		"too many claims":           {rule("r", many), "claims"},
		"a long value":              {rule("r", map[string]v1alpha1.TrustedValue{"ref": long}), "claims.ref"},
		"an empty value":            {only(map[string]v1alpha1.TrustedValue{"repository_id": ""}), "claims.repository_id"},
		"a strange name":            {rule("r", map[string]v1alpha1.TrustedValue{"a b": "x"}), "claims"},
		"a claim of the hub":        {rule("r", map[string]v1alpha1.TrustedValue{"aud": "x"}), "claims.aud"},
		"a repository by name":      {only(map[string]v1alpha1.TrustedValue{"repository": "octo/app"}), "claims.repository_id"},
		"an owner by name":          {only(map[string]v1alpha1.TrustedValue{"repository_owner": "octo"}), "claims.repository_id"},
		"a name in sub":             {only(map[string]v1alpha1.TrustedValue{"sub": "repo:octo/app:ref:refs/heads/main"}), "claims.repository_id"},
		"a project by path":         {only(map[string]v1alpha1.TrustedValue{"project_path": "g/app"}), "claims.project_id"},
		"a group by path":           {only(map[string]v1alpha1.TrustedValue{"namespace_path": "g"}), "claims.project_id"},
		"a path in sub":             {only(map[string]v1alpha1.TrustedValue{"sub": "project_path:g/app:ref_type:branch:ref:main"}), "claims.project_id"},
		"every customer of GitHub":  {only(map[string]v1alpha1.TrustedValue{"environment": "prod"}), "claims"},
		"an audience of a thousand": {v1alpha1.BotTrust{Issuer: github, Audience: strings.Repeat("x", 1000), Claims: rule("r", nil).Claims}, "audience"},
	} {
		err := tenancy.CheckTrust(c.rule, []string{github, gitlab, cluster})
		if c.field == "" {
			require.NoError(t, err, name)
			continue
		}
		var refused *errs.Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, errs.Unprocessable, refused.Code, name)
		require.Equal(t, c.field, refused.Causes[0].Field, name)
	}
	require.ErrorContains(t, tenancy.CheckTrust(rule("r", nil), nil), "--ci-issuer")
}

func TestTrustedUntil_endsSoonAfterTheTokenOfTheJob(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: 11 * time.Minute, 50 * time.Minute: time.Hour, 55 * time.Minute: time.Hour, 24 * time.Hour: time.Hour,
	} {
		w := job(nil)
		w.ExpiresAt = botTime.Add(left)
		require.Equal(t, botTime.Add(want), tenancy.TrustedUntil(w, botTime))
	}
}

func TestBotGate_refusesTheTokenOfAJobThatIsNotTrustedAnyMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*v1alpha1.Bot)
		ok   bool
	}{
		"trusted":           {func(*v1alpha1.Bot) {}, true},
		"the rule is gone":  {func(b *v1alpha1.Bot) { b.Spec.Trust = nil }, false},
		"the issuer is not": {func(b *v1alpha1.Bot) { b.Spec.Trust[0].Issuer = "https://former.example.com" }, false},
	} {
		w := newBotWorld()
		w.bot.Spec.Trust = []v1alpha1.BotTrust{rule("r", nil)}
		w.bot.Spec.Tokens[0].Trust = "r"
		c.edit(w.bot)
		g := w.gate(t)
		g.Issuers = []string{github}
		_, _, err := g.Check(goodToken(), botTime)
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
		kept := tenancy.KeptTokens(w.bot, botTime, g.Issuers, func(string) string { return "secret" })
		require.Equal(t, c.ok, len(kept) == 1, name)
	}
}

func TestRemoveTrust_endsWhatItLetIn(t *testing.T) {
	t.Parallel()
	b := readyBot(botToken("person's", "s1", time.Minute, time.Hour), botToken("job's", "s2", time.Minute, time.Hour), botToken("other job's", "s3", time.Minute, time.Hour))
	b.Spec.Trust = []v1alpha1.BotTrust{rule("r", nil), rule("other", nil)}
	b.Spec.Tokens[1].Trust, b.Spec.Tokens[2].Trust = "r", "other"
	require.False(t, tenancy.RemoveTrust(b, "none"))
	require.Zero(t, b.Spec.RightsGeneration)
	require.True(t, tenancy.RemoveTrust(b, "r"))
	require.Len(t, b.Spec.Tokens, 2)
	require.Equal(t, "other", b.Spec.Trust[0].ID)
	require.EqualValues(t, 1, b.Spec.RightsGeneration)
}

func TestAddToken_countsJobsByThemselves(t *testing.T) {
	t.Parallel()
	b := readyBot()
	add := func(id, trust string) error {
		k := botToken(id, "s"+id, 0, time.Hour)
		k.Trust = trust
		tokens, err := tenancy.AddToken(b, k, botTime)
		if err == nil {
			b.Spec.Tokens = tokens
		}
		return err
	}
	for i := range tenancy.MaxTrustedTokens {
		require.NoError(t, add("job"+strconv.Itoa(i), "r"))
	}
	require.True(t, tenancy.IsQuota(add("one more", "r")))
	for i := range tenancy.MaxBotTokens {
		require.NoError(t, add(strconv.Itoa(i), ""))
	}
	require.True(t, tenancy.IsQuota(add("one more", "")))
}

// A Bot has one pending change. A rule that is added does not undo a role that was raised before it.
func TestDecideBot_keepsARaiseBesideARule(t *testing.T) {
	t.Parallel()
	b := readyBot()
	b.UID = "uid"
	o := tenancy.NewOrganization(botOrg, "Acme", "alice")
	decide := func(c v1alpha1.BotChange) error {
		c.Name, c.UID = b.Name, b.UID
		changes, err := tenancy.DecideBot(o, b, c)
		if changes != nil {
			o.Spec.BotChanges = changes
		}
		return err
	}
	first, second := rule("r", nil), rule("r2", nil)
	require.NoError(t, decide(v1alpha1.BotChange{Role: v1alpha1.RoleAdmin}))
	require.NoError(t, decide(v1alpha1.BotChange{Trust: &first}))
	require.Len(t, o.Spec.BotChanges, 1)
	changed := tenancy.ChangedBot(b, o.Spec.BotChanges[0])
	require.Equal(t, v1alpha1.RoleAdmin, changed.Spec.Role)
	require.Equal(t, []v1alpha1.BotTrust{first}, changed.Spec.Trust)
	require.True(t, errs.Is(decide(v1alpha1.BotChange{Trust: &second}), errs.Conflict), "one at a time")
	require.NoError(t, decide(v1alpha1.BotChange{Trust: &first}), "a repetition")
	require.Equal(t, changed.Spec.Trust, tenancy.ChangedBot(changed, o.Spec.BotChanges[0]).Spec.Trust, "twice is once")

	// A rule that was removed does not come back with a change that was accepted before.
	o.Spec.BotChanges[0].From = changed.Spec.Role
	require.True(t, tenancy.BotChangeApplies(o.Spec.BotChanges[0], changed))
	require.True(t, tenancy.RemoveTrust(changed, "r"))
	require.False(t, tenancy.BotChangeApplies(o.Spec.BotChanges[0], changed))

	o.Spec.BotChanges = nil
	for i := range tenancy.MaxBotTrust {
		b.Spec.Trust = append(b.Spec.Trust, rule("r"+strconv.Itoa(100+i), nil))
	}
	require.True(t, tenancy.IsQuota(decide(v1alpha1.BotChange{Trust: &second})))
}

// GitHub lets a repository choose what is in sub, and a name that became free goes to somebody else.
func TestTrust_aSubAloneDoesNotLetInTheRepositoryOfAStranger(t *testing.T) {
	t.Parallel()
	for sub, numbers := range map[string][]string{
		"environment:prod": {"repository_id", "repository_owner_id"}, "repository_owner:acme:environment:prod": {"repository_owner_id"},
		"job_workflow_ref:acme/ci/.github/workflows/deploy.yml@refs/heads/main": {"repository_id"}, "anything": {"namespace_id", "project_id"},
	} {
		alone := v1alpha1.BotTrust{ID: "r", Issuer: github, Claims: map[string]v1alpha1.TrustedValue{"sub": v1alpha1.TrustedValue(sub)}}
		for issuer, field := range map[string]string{
			github: "claims.repository_id", "https://token.actions.acme.ghe.com": "claims.repository_id",
			"https://ghes.example.com/_services/token": "claims.repository_id",
			gitlab: "claims.project_id", "https://gitlab.com": "claims.project_id", cluster: "",
		} {
			rule := alone
			rule.Issuer = issuer
			err := tenancy.CheckTrust(rule, []string{issuer})
			if field == "" {
				require.NoError(t, err, "%s %s", issuer, sub)
				continue
			}
			var refused *errs.Error
			require.ErrorAs(t, err, &refused, "%s %s", issuer, sub)
			require.Equal(t, field, refused.Causes[0].Field, "%s %s", issuer, sub)
			require.ErrorContains(t, err, "repository_owner_id", "it says which claims would do")
		}
		// A rule from before, or about a provider that is not known by its URL, is judged by the token.
		stranger := tenancy.Workload{Issuer: github, Audience: []string{hubURL}, Claims: map[string]string{"sub": sub}}
		require.Empty(t, tenancy.Mismatch(alone, stranger, hubURL), "a provider whose tokens have no number")
		for _, number := range numbers {
			stranger.Claims[number] = "666"
		}
		require.Contains(t, numbers, tenancy.Mismatch(alone, stranger, hubURL), sub)
		for _, number := range numbers {
			with := alone
			with.Claims = map[string]v1alpha1.TrustedValue{"sub": v1alpha1.TrustedValue(sub), number: "42"}
			require.NoError(t, tenancy.CheckTrust(with, []string{github}))
			require.Equal(t, number, tenancy.Mismatch(with, stranger, hubURL))
			stranger.Claims[number] = "42"
			require.Empty(t, tenancy.Mismatch(with, stranger, hubURL))
			stranger.Claims[number] = "666"
		}
	}
}
