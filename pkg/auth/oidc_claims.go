package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// The limits of what becomes part of a User.
const (
	maxSubject  = 255
	maxUsername = 1024
	maxGroups   = 1000
)

// latest is the last moment that a NumericDate can name: the end of the year 9999.
const latest = 253402300799

// claims are the claims of a token, with exact names: Go's structs would match them in any
// case.
type claims map[string]json.RawMessage

// parseClaims returns the claims of a token without verifying it. Each part must have its
// one canonical encoding, because Sessions know a token by the hash of its signed part.
func parseClaims(token string) (claims, error) {
	var payload []byte
	for i, part := range strings.Split(token, ".") {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil || strings.ContainsAny(part, "\r\n") {
			return nil, errOtherIssuer
		}
		if i == 1 {
			payload = raw
		}
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, errOtherIssuer
	}
	return c, nil
}

// text returns a claim that is a string, or the empty string.
func (c claims) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// texts returns a claim that is a string or a list of strings. ok is false for other types.
func (c claims) texts(name string) (all []string, ok bool) {
	raw, there := c[name]
	if !there {
		return nil, true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	return all, json.Unmarshal(raw, &all) == nil
}

// time returns a claim that is a NumericDate. It is zero if the claim is missing or malformed.
func (c claims) time(name string) time.Time {
	var seconds float64
	if json.Unmarshal(c[name], &seconds) != nil || !(seconds > 0 && seconds < latest) {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

// isTrue reports whether a claim is the boolean true.
func (c claims) isTrue(name string) bool {
	var b bool
	return json.Unmarshal(c[name], &b) == nil && b
}

func invalid(message string) error {
	return errs.New(errs.Unauthenticated, "the token is not valid: "+message)
}

func errExpired() error { return errs.New(errs.Unauthenticated, "the token has expired; log in again") }

func unavailable(err error, after time.Duration) error {
	return errs.Wrap(errs.Unavailable, err, "the token cannot be checked at the moment; try again").After(max(after, time.Second))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// jobClaims are in the ID tokens that GitHub and GitLab sign for the jobs of CI, and not in those of people: each of the
// lists has those that are there together. A company may give its people a job_id.
func jobClaims() [][]string {
	return [][]string{{"job_workflow_ref"}, {"ci_config_ref_uri"}, {"job_id", "pipeline_id"}}
}

// checkClaims checks everything that the signature does not prove.
func (o *OIDC) checkClaims(c claims, now time.Time) error {
	expiry, issued, notBefore := c.time("exp"), c.time("iat"), c.time("nbf")
	_, hasNotBefore := c["nbf"]
	switch {
	case expiry.IsZero():
		return invalid("it has no exp")
	case !now.Before(expiry):
		return errExpired()
	case issued.IsZero():
		return invalid("it has no iat")
	case issued.After(now.Add(leeway)):
		return invalid("it was issued in the future; compare the clocks of the hub and the issuer")
	case hasNotBefore && (notBefore.IsZero() || notBefore.After(now.Add(leeway))):
		return invalid("its nbf is in the future; compare the clocks of the hub and the issuer")
	}
	if err := o.checkAudience(c); err != nil {
		return err
	}
	// A job chooses the audience of its token, and its sub is another one for each branch.
	lacks := func(name string) bool { _, there := c[name]; return !there }
	if slices.ContainsFunc(jobClaims(), func(together []string) bool { return !slices.ContainsFunc(together, lacks) }) {
		return errs.New(errs.Forbidden, "the token is that of a job of CI, which is no person; let a bot trust the job: kedge bots trust add")
	}
	for name, want := range o.config.RequiredClaims {
		if _, ok := c[name]; !ok || c.text(name) != want {
			return errs.New(errs.Forbidden, "the token lacks a claim that this hub requires; ask the operator")
		}
	}
	if subject := c.text("sub"); subject == "" || len(subject) > maxSubject {
		return invalid("it has no sub of at most 255 characters")
	}
	return nil
}

// checkAudience checks aud, and azp as OpenID Connect Core 3.1.3.7 says.
func (o *OIDC) checkAudience(c claims) error {
	accepted := func(id string) bool {
		return id != "" && (id == o.config.ClientID || slices.Contains(o.config.ExtraAudiences, id))
	}
	audience, ok := c.texts("aud")
	if !ok || !slices.ContainsFunc(audience, accepted) {
		return invalid("it is for another audience")
	}
	if _, there := c["azp"]; (there || len(audience) > 1) && !accepted(c.text("azp")) {
		return invalid("it was issued to another client")
	}
	return nil
}

// identity derives the Identity from verified claims.
func (o *OIDC) identity(c claims) (*Identity, error) {
	name := c.text(o.config.UsernameClaim)
	verified := c.isTrue("email_verified")
	switch {
	case name == "":
		return nil, errs.New(errs.Forbidden, "the token lacks the claim that is the username here; ask the operator")
	case !Readable(name):
		return nil, errs.New(errs.Forbidden,
			"the claim in the token that is the username here is blank, has a control character, or begins or ends with an invisible one; ask the operator")
	case o.config.UsernameClaim == "email" && !verified:
		return nil, errs.New(errs.Forbidden, "the email address in the token is not verified; verify it at the identity provider")
	}
	id := &Identity{
		Kind: Person, Issuer: o.config.IssuerURL, Subject: c.text("sub"), Username: o.config.UsernamePrefix + name,
		PreferredUsername: c.text("preferred_username"), DisplayName: c.text("name"),
		IssuedAt: c.time("iat"), ExpiresAt: c.time("exp"),
	}
	if verified {
		id.Email = c.text("email")
		id.VerifiedEmail = id.Email
	}
	if id.DisplayName == "" {
		id.DisplayName = id.PreferredUsername
	}
	if len(id.Username) > maxUsername || ReservedName(id.Username) || NameOfKCP(id.Username) || slices.Contains(o.config.ReservedUsernames, id.Username) {
		return nil, errs.New(errs.Forbidden, "the username in the token is reserved; ask the operator")
	}
	if o.config.GroupsClaim == "" {
		return id, nil
	}
	groups, ok := c.texts(o.config.GroupsClaim)
	if !ok || len(groups) > maxGroups {
		return nil, errs.New(errs.Forbidden, "the groups in the token are not a list of at most 1000 strings; ask the operator")
	}
	_, id.GroupsKnown = c[o.config.GroupsClaim]
	for _, group := range groups {
		group = o.config.UsernamePrefix + group
		if ReservedName(group) {
			return nil, errs.New(errs.Forbidden, "a group in the token is reserved; ask the operator")
		}
		id.Groups = append(id.Groups, group)
	}
	return id, nil
}

// ReservedName reports whether a username or group means something to kcp or, as a group in
// Workspaces, to the hub.
func ReservedName(name string) bool {
	return slices.ContainsFunc(reservedPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
