package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const (
	// maxWorkloadClaim is the maximum length of a claim of a job that is compared, in bytes.
	maxWorkloadClaim = 2048
	// maxWorkloadName is the maximum length of the name of a job, in characters.
	maxWorkloadName = 128
)

// WorkloadsConfig configures the issuers of the ID tokens of jobs.
type WorkloadsConfig struct {
	// Issuers are the https URLs of the issuers.
	Issuers []string
	// CA are the PEM certificates that the issuers' certificates are verified with. Empty means
	// those of the system.
	CA []byte
	// Clock is the clock of expiry and retries.
	Clock clock.WithTicker
	// Metrics is where kedge_ci_* are registered.
	Metrics prometheus.Registerer
}

// Workload is what the ID token of a job proves.
type Workload struct {
	Issuer   string
	Audience []string
	// Claims are the claims that are texts, numbers and booleans, as text.
	Claims    map[string]string
	ExpiresAt time.Time
	// ID is the same for two presentations of one token, and for no other token: a hash of the issuer
	// and of jti or, without one, of what is signed.
	ID string
	// Name is a name of the job for people.
	Name string
}

// Workloads verifies the ID tokens of jobs. No cache has its verdicts, because a token is used once.
type Workloads struct {
	issuers map[string]*issuer
	clock   clock.PassiveClock
}

// NewWorkloads returns Workloads. It makes no request; Run does.
func NewWorkloads(config WorkloadsConfig) (*Workloads, error) {
	w := &Workloads{issuers: map[string]*issuer{}, clock: config.Clock}
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_ci_key_fetches_total", Help: "Requests for the keys of the issuers of jobs, by issuer and by result: ok or error.",
	}, []string{"issuer", "result"})
	if err := config.Metrics.Register(fetches); err != nil {
		return nil, err
	}
	for _, url := range config.Issuers {
		i := &issuer{url: url, clock: config.Clock}
		if err := i.init(config.CA, fetches.MustCurryWith(prometheus.Labels{"issuer": url})); err != nil {
			return nil, err
		}
		up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "kedge_ci_issuer_up",
			Help:        "1 if the last request for the discovery document and the keys of an issuer of jobs succeeded, else 0.",
			ConstLabels: prometheus.Labels{"issuer": url},
		}, i.up)
		if err := config.Metrics.Register(up); err != nil {
			return nil, err
		}
		w.issuers[url] = i
	}
	return w, nil
}

// Run fetches the keys of an issuer until ctx ends.
func (w *Workloads) Run(ctx context.Context, issuer string) { w.issuers[issuer].Run(ctx) }

// SetCA replaces the PEM certificates that the issuers' certificates are verified with.
func (w *Workloads) SetCA(ca []byte) error {
	for _, i := range w.issuers {
		if err := i.SetCA(ca); err != nil {
			return err
		}
	}
	return nil
}

// Err returns which issuers cannot be used, or nil. It is for operators.
func (w *Workloads) Err() error {
	var all []error
	for _, i := range w.issuers {
		all = append(all, i.Err())
	}
	return errors.Join(all...)
}

// Verify verifies the ID token of a job. It does not compare its audience. An error with the code
// errs.Unavailable means that the token cannot be verified at present; every other, that it is not
// valid.
func (w *Workloads) Verify(ctx context.Context, token string) (*Workload, error) {
	i, c, err := w.claimed(token)
	if err != nil {
		return nil, err
	}
	if _, err := i.verifySignature(ctx, token, false); err != nil {
		return nil, err
	}
	return workloadOf(i.url, token, c)
}

// Genuine reports whether an issuer has signed a token with a key that is known, and returns a key of
// the subject of the token. It makes no request.
func (w *Workloads) Genuine(token string) (subject string, ok bool) {
	i, c, err := w.claimed(token)
	if err != nil {
		return "", false
	}
	signed, err := i.signable(token)
	if err != nil {
		return "", false
	}
	keys, _ := i.keys.known()
	if i.verifyWith(context.Background(), signed, matching(keys, signed)) != nil {
		return "", false
	}
	return credentialID(i.url + "\n" + c.text("sub")), true
}

// claimed checks everything that the signature does not prove, so that a token with invalid claims
// causes no request.
func (w *Workloads) claimed(token string) (*issuer, claims, error) {
	if !mayBeJWT(token) {
		return nil, nil, invalid("it is not a JSON Web Token")
	}
	c, err := parseClaims(token)
	if err != nil {
		return nil, nil, invalid("it is not a JSON Web Token")
	}
	i := w.issuers[c.text("iss")]
	if i == nil {
		return nil, nil, invalid("its issuer is not one of --ci-issuer")
	}
	now, expiry, issued, notBefore := w.clock.Now(), c.time("exp"), c.time("iat"), c.time("nbf")
	_, hasNotBefore := c["nbf"]
	switch {
	case expiry.IsZero() || !now.Before(expiry):
		return nil, nil, invalid("it has expired")
	case issued.IsZero() || issued.After(now.Add(leeway)):
		return nil, nil, invalid("it was issued in the future; compare the clocks of the hub and the issuer")
	case hasNotBefore && (notBefore.IsZero() || notBefore.After(now.Add(leeway))):
		return nil, nil, invalid("its nbf is in the future; compare the clocks of the hub and the issuer")
	case c.text("sub") == "":
		return nil, nil, invalid("it has no sub")
	}
	return i, c, nil
}

// workloadOf reads the claims of a verified token.
func workloadOf(issuer, token string, c claims) (*Workload, error) {
	audience, ok := c.texts("aud")
	if !ok {
		return nil, invalid("its aud is neither a text nor a list of texts")
	}
	w := &Workload{Issuer: issuer, Audience: audience, Claims: map[string]string{}, ExpiresAt: c.time("exp"), ID: tokenID(issuer, token, c)}
	for name, raw := range c {
		var value any
		if len(raw) > maxWorkloadClaim || json.Unmarshal(raw, &value) != nil {
			continue
		}
		switch value := value.(type) {
		case string:
			w.Claims[name] = value
		case bool, float64:
			w.Claims[name] = string(raw)
		}
	}
	w.Name = nameOf(w.Claims)
	return w, nil
}

func tokenID(issuer, token string, c claims) string {
	of := "jti\n" + c.text("jti")
	if c.text("jti") == "" {
		of = "token\n" + JWTCredential(token)
	}
	sum := sha256.Sum256([]byte(issuer + "\n" + of))
	return hex.EncodeToString(sum[:])
}

// nameOf is the name of a job: what GitHub and GitLab call it, else its sub.
func nameOf(claims map[string]string) string {
	name := claims["sub"]
	switch {
	case claims["repository"] != "" && claims["run_id"] != "":
		name = fmt.Sprintf("%s run %s", claims["repository"], claims["run_id"])
	case claims["project_path"] != "" && claims["job_id"] != "":
		name = fmt.Sprintf("%s job %s", claims["project_path"], claims["job_id"])
	}
	letters := slices.DeleteFunc([]rune(strings.ToValidUTF8(name, "")), func(c rune) bool { return !unicode.IsPrint(c) })
	return strings.TrimSpace(string(letters[:min(len(letters), maxWorkloadName)]))
}
