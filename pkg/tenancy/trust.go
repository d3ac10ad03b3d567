package tenancy

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const (
	// MaxBotTrust is the number of trust rules that a Bot can have.
	MaxBotTrust = 20
	// MaxTrustedTokens is the number of living tokens that jobs can have of a Bot.
	MaxTrustedTokens = 200

	// maxTrustedTTL is the longest life of a token of a job, and trustedGrace how long it can outlive
	// the ID token that it was given for.
	maxTrustedTTL = time.Hour
	trustedGrace  = 10 * time.Minute

	// maxTrustClaims is the number of claims that a rule can name, and maxTrustText the maximum
	// length of their values and of an audience, in characters.
	maxTrustClaims = 16
	maxTrustText   = 512
)

// ErrNotTrusted is the one answer to a job that gets no token of a Bot, whatever the reason.
var ErrNotTrusted = errors.New("the bot does not exist, or does not trust this job")

// Workload is what a verified ID token says about a job.
type Workload struct {
	Issuer   string
	Audience []string
	// Claims are the claims that are texts, numbers and booleans, as text.
	Claims    map[string]string
	ExpiresAt time.Time
	// ID is the same for two presentations of one token, and for no other token.
	ID string
}

// AudienceOf returns the audience of a rule. hub is the external URL of the hub.
func AudienceOf(t v1alpha1.BotTrust, hub string) string {
	if t.Audience == "" {
		return hub
	}
	return t.Audience
}

// Mismatch returns the name of the first claim of a job that a rule does not let in. It is empty for
// a job that the rule lets in.
//
// A pull request runs code of a person outside of the project in a job of the project, so that a rule
// must name the claim that says so. A rule that names no number of the owner lets in no job that has one: what
// sub says there is the choice of each repository, and its names can become those of strangers.
func Mismatch(t v1alpha1.BotTrust, w Workload, hub string) string {
	switch {
	case w.Issuer != t.Issuer:
		return "iss"
	case !slices.Contains(w.Audience, AudienceOf(t, hub)):
		return "aud"
	}
	for _, name := range slices.Sorted(maps.Keys(t.Claims)) {
		if got, there := w.Claims[name]; !there || got != string(t.Claims[name]) {
			return name
		}
	}
	if number := unnumbered(t.Claims, w.Claims); number != "" {
		return number
	}
	if _, named := t.Claims["event_name"]; !named && strings.HasPrefix(w.Claims["event_name"], "pull_request") {
		return "event_name"
	}
	if _, named := t.Claims["pipeline_source"]; !named && w.Claims["pipeline_source"] == "merge_request_event" {
		return "pipeline_source"
	}
	return ""
}

// TrustedRule returns the rule of a Bot that lets a job in. If none does, refusals has the claim that did
// not match for each rule of the job's issuer, by the ID of the rule.
func TrustedRule(b *v1alpha1.Bot, w Workload, hub string) (rule v1alpha1.BotTrust, refusals map[string]string, ok bool) {
	refusals = map[string]string{}
	for _, t := range b.Spec.Trust {
		claim := Mismatch(t, w, hub)
		if claim == "" {
			return t, nil, true
		}
		if t.Issuer == w.Issuer {
			refusals[t.ID] = claim
		}
	}
	return v1alpha1.BotTrust{}, refusals, false
}

// TrustedUntil returns the end of a token that a job gets now.
func TrustedUntil(w Workload, now time.Time) time.Time {
	until := now.Add(maxTrustedTTL)
	if end := w.ExpiresAt.Add(trustedGrace); end.Before(until) {
		return end
	}
	return until
}

// Trusted reports whether a token of a Bot was issued by a person, or is one of a job that the Bot still
// trusts. issuers are the identity providers whose jobs Bots may trust.
func Trusted(b *v1alpha1.Bot, t v1alpha1.BotToken, issuers []string) bool {
	if t.Trust == "" {
		return true
	}
	rule, ok := TrustOf(b, t.Trust)
	return ok && slices.Contains(issuers, rule.Issuer)
}

func trustedTokens(tokens []v1alpha1.BotToken) (n int) {
	for _, t := range tokens {
		if t.Trust != "" && t.RotatedTo == "" {
			n++
		}
	}
	return n
}

// TrustOf returns the rule of a Bot with that ID.
func TrustOf(b *v1alpha1.Bot, id string) (v1alpha1.BotTrust, bool) {
	return first(b.Spec.Trust, func(t v1alpha1.BotTrust) bool { return t.ID == id })
}

// RemoveTrust takes a rule from a Bot, and the tokens that jobs got by it. It reports whether the rule
// was there.
func RemoveTrust(b *v1alpha1.Bot, id string) bool {
	if _, ok := TrustOf(b, id); !ok {
		return false
	}
	b.Spec.Trust = slices.DeleteFunc(slices.Clone(b.Spec.Trust), func(t v1alpha1.BotTrust) bool { return t.ID == id })
	b.Spec.Tokens = slices.DeleteFunc(slices.Clone(b.Spec.Tokens), func(t v1alpha1.BotToken) bool { return t.Trust == id })
	b.Spec.RightsGeneration++
	return true
}

// TrustStatusOf returns the status of the rules that a Bot has, with the uses that its tokens show.
func TrustStatusOf(b *v1alpha1.Bot) (all []v1alpha1.BotTrustStatus) {
	for _, rule := range b.Spec.Trust {
		s := v1alpha1.BotTrustStatus{ID: rule.ID}
		if i := slices.IndexFunc(b.Status.Trust, func(known v1alpha1.BotTrustStatus) bool { return known.ID == rule.ID }); i >= 0 {
			s = *b.Status.Trust[i].DeepCopy()
		}
		s.LastUsedAt = LastIssued(slices.DeleteFunc(slices.Clone(b.Spec.Tokens), func(t v1alpha1.BotToken) bool { return t.Trust != rule.ID }), s.LastUsedAt)
		if s.LastUsedAt != nil || s.LastRefusal != nil {
			all = append(all, s)
		}
	}
	return all
}

// RecordRefusal records in the status of a Bot that its rules let a job not in.
func RecordRefusal(b *v1alpha1.Bot, refusals map[string]string, now time.Time) {
	for _, rule := range b.Spec.Trust {
		claim, ok := refusals[rule.ID]
		if !ok {
			continue
		}
		i := slices.IndexFunc(b.Status.Trust, func(s v1alpha1.BotTrustStatus) bool { return s.ID == rule.ID })
		if i < 0 {
			b.Status.Trust, i = append(b.Status.Trust, v1alpha1.BotTrustStatus{ID: rule.ID}), len(b.Status.Trust)
		}
		b.Status.Trust[i].LastRefusal = &v1alpha1.TrustRefusal{At: metav1.NewTime(now).Rfc3339Copy(), Claim: claim}
	}
}

func checkNewTrust(b *v1alpha1.Bot, t v1alpha1.BotTrust) error {
	if _, there := TrustOf(b, t.ID); there {
		return nil
	}
	return checkQuota(MaxBotTrust, len(b.Spec.Trust), "this bot has %d of at most %d trust rules; remove one that is not needed any more")
}

func trustID(t *v1alpha1.BotTrust) string {
	if t == nil {
		return ""
	}
	return t.ID
}

func sameRule(a, b *v1alpha1.BotTrust) bool { return trustID(a) == trustID(b) }

// claimName is the form of the names of claims in rules.
var claimName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,64}$`)

// judgedClaims are the claims that a rule has fields for, or that differ in every token.
var judgedClaims = []string{"iss", "aud", "exp", "nbf", "iat", "jti"}

// numberClaims say whose job it is, by a number that is never given to somebody else. The tokens of GitHub
// Actions and GitLab have them.
func numberClaims() []string {
	return []string{"repository_id", "project_id", "repository_owner_id", "namespace_id"}
}

// ownerClaims say whose job it is. Without one of them a rule lets in the jobs of every customer of a
// public identity provider. sub is enough only for providers whose tokens have no number.
func ownerClaims() []string { return append([]string{"sub"}, numberClaims()...) }

// unnumbered returns the number of a job that a rule should name, if the job has one and the rule has none.
func unnumbered(rule map[string]v1alpha1.TrustedValue, job map[string]string) string {
	missing := ""
	for _, name := range numberClaims() {
		if _, named := rule[name]; named {
			return ""
		}
		if _, there := job[name]; there && missing == "" {
			missing = name
		}
	}
	return missing
}

// numberOf returns the number that the tokens of an identity provider are known to have: that of a repository at
// GitHub, that of a project at GitLab. What it does not know, Mismatch sees in the token.
func numberOf(issuer string) string {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
	case strings.HasPrefix(u.Host, "token.actions."), strings.HasSuffix(u.Path, "/_services/token"):
		return "repository_id"
	case strings.HasPrefix(u.Host, "gitlab."):
		return "project_id"
	}
	return ""
}

// CheckTrust refuses a rule that cannot match, or that can match the jobs of strangers: a name can be
// given to another project later, a number cannot. issuers are those that the operator allows.
func CheckTrust(t v1alpha1.BotTrust, issuers []string) error {
	refuse := errs.UnprocessableField
	switch {
	case len(issuers) == 0:
		return refuse("issuer", "this hub has no identity provider of jobs; ask the operator for --ci-issuer")
	case !slices.Contains(issuers, t.Issuer):
		return refuse("issuer", "must be an identity provider of jobs that this hub allows: "+strings.Join(issuers, ", "))
	case utf8.RuneCountInString(t.Audience) > maxTrustText:
		return refuse("audience", fmt.Sprintf("must have at most %d characters", maxTrustText))
	case len(t.Claims) == 0 || len(t.Claims) > maxTrustClaims:
		return refuse("claims", fmt.Sprintf("must name 1 to %d claims with their exact values", maxTrustClaims))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Claims)) {
		value := string(t.Claims[name])
		switch {
		case !claimName.MatchString(name):
			return refuse("claims", "the name of a claim must have 1 to 64 letters, digits and characters of _ . : / -")
		case slices.Contains(judgedClaims, name):
			return refuse("claims."+name, "the hub checks this claim by itself; name one that says which job it is")
		case value == "" || utf8.RuneCountInString(value) > maxTrustText:
			return refuse("claims."+name, fmt.Sprintf("must have 1 to %d characters", maxTrustText))
		}
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := t.Claims[name]; return ok })
	}
	sub := string(t.Claims["sub"])
	switch {
	case (has("repository", "repository_owner") || strings.HasPrefix(sub, "repo:")) && !has("repository_id"):
		return refuse("claims.repository_id", "is missing: the name of a repository can become that of another repository, so give its number, too")
	case (has("project_path", "namespace_path") || strings.HasPrefix(sub, "project_path:")) && !has("project_id"):
		return refuse("claims.project_id", "is missing: the path of a project can become that of another project, so give its number, too")
	case !has(ownerClaims()...):
		return refuse("claims", "must name one that says whose job it is: "+strings.Join(ownerClaims(), ", "))
	}
	if number := numberOf(t.Issuer); number != "" && !has(numberClaims()...) {
		return refuse("claims."+number, "is missing: sub alone does not say whose job it is at this identity provider, because others can have the same; "+
			"give a number, too: "+strings.Join(numberClaims(), ", "))
	}
	return nil
}
