package auth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// JWTAuthenticator is the configuration with which kcp accepts the tokens that OIDC accepts
// and derives the same usernames. It is a second line of defence: kcp refuses reserved names, too.
func (c OIDCConfig) JWTAuthenticator() apiserverv1.JWTAuthenticator {
	prefix := c.UsernamePrefix
	a := apiserverv1.JWTAuthenticator{
		Issuer: apiserverv1.Issuer{
			URL: c.IssuerURL, CertificateAuthority: string(c.CA),
			Audiences: append([]string{c.ClientID}, c.ExtraAudiences...), AudienceMatchPolicy: apiserverv1.AudienceMatchPolicyMatchAny,
		},
		ClaimMappings: apiserverv1.ClaimMappings{
			Username: apiserverv1.PrefixedClaimOrExpression{Claim: c.UsernameClaim, Prefix: &prefix},
		},
	}
	if c.GroupsClaim != "" {
		a.ClaimMappings.Groups = apiserverv1.PrefixedClaimOrExpression{Claim: c.GroupsClaim, Prefix: &prefix}
	}
	for _, name := range slices.Sorted(maps.Keys(c.RequiredClaims)) {
		a.ClaimValidationRules = append(a.ClaimValidationRules, apiserverv1.ClaimValidationRule{Claim: name, RequiredValue: c.RequiredClaims[name]})
	}
	a.ClaimValidationRules = append(a.ClaimValidationRules, apiserverv1.ClaimValidationRule{
		Expression: fmt.Sprintf("!claims[%q].matches(r'%s')", c.UsernameClaim, unreadable), Message: "the username cannot be read",
	})
	var job []string
	for _, together := range jobClaims() {
		job = append(job, "!(has(claims."+strings.Join(together, ") && has(claims.")+"))")
	}
	a.ClaimValidationRules = append(a.ClaimValidationRules, apiserverv1.ClaimValidationRule{
		Expression: strings.Join(job, " && "), Message: "the token is that of a job of CI",
	})
	if c.UsernameClaim == "email" {
		a.ClaimValidationRules = append(a.ClaimValidationRules, apiserverv1.ClaimValidationRule{
			Expression: "claims.?email_verified.orValue(false) == true", Message: "the email address is not verified",
		})
	}
	var username, group []string
	for _, reserved := range reservedPrefixes() {
		username = append(username, fmt.Sprintf("!user.username.startsWith('%s')", reserved))
		group = append(group, fmt.Sprintf("!group.startsWith('%s')", reserved))
	}
	for _, reserved := range namesOfKCP() {
		username = append(username, fmt.Sprintf("user.username != '%s'", reserved))
	}
	a.UserValidationRules = []apiserverv1.UserValidationRule{
		{Expression: strings.Join(username, " && "), Message: "the username is reserved"},
		{Expression: "user.groups.all(group, " + strings.Join(group, " && ") + ")", Message: "a group is reserved"},
	}
	return a
}

// reservedPrefixes begin the names of kcp and, as groups in Workspaces, of the hub.
func reservedPrefixes() []string { return []string{"system:", "kedge:workspace:"} }

// namesOfKCP are the users that kcp itself creates.
func namesOfKCP() []string { return []string{"kcp-admin", "shard-admin", "user"} }
