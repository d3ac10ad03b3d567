package accounts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// namespace and name are the account that the hub asks with.
	namespace = metav1.NamespaceDefault
	name      = "kedge-hub"
	// life is the life of the token that the hub asks for, in seconds. It is kcp's shortest.
	life = 600
	// firstRetry and lastRetry bound the back-off after kcp could not be asked.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// maxKeys is the maximum size of kcp's keys, in bytes.
	maxKeys = 1 << 20
	// maxAsked is how many logical clusters of a shard are asked for its keys.
	maxAsked = 64
	// askTimeout limits one series of requests.
	askTimeout = 10 * time.Second
	// probe is the Secret that the hub deletes to learn whether kcp looks it up.
	probe = "kedge-hub-lookup"
	// lookupTime is the time within which a kcp that looks Secrets up has noticed that one was
	// deleted. It keeps the result for a token for ten seconds.
	lookupTime = 20 * time.Second
	// lookupPoll is the interval at which it is asked.
	lookupPoll = time.Second
)

// Accounts are the facts about kcp's ServiceAccount tokens.
type Accounts struct {
	clients  *kcp.Clients
	cluster  string
	audience string
	clock    clock.Clock

	mu        sync.Mutex
	issuer    string
	audiences []string
	err       error
	// skipsLookup is true after kcp has accepted a token of a Secret that was deleted.
	skipsLookup bool
}

// New returns the facts for the kcp of the clients, which are not known until Ask or Run. The
// hub's account is in cluster. audience is the one that tokens of Bots have besides kcp's own.
func New(clients *kcp.Clients, cluster, audience string, k clock.Clock) *Accounts {
	return &Accounts{clients: clients, cluster: cluster, audience: audience, clock: k, err: errors.New("kcp was not asked yet")}
}

// Run asks kcp until it knows the facts or ctx ends.
func (a *Accounts) Run(ctx context.Context) {
	a.repeat(ctx, a.Ask)
	a.repeat(ctx, a.AskLookup)
}

// repeat calls ask until it succeeds or ctx ends.
func (a *Accounts) repeat(ctx context.Context, ask func(context.Context) error) {
	for retry := firstRetry; ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		if ask(ctx) == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-a.clock.After(retry):
		}
	}
}

// Ask asks kcp once.
func (a *Accounts) Ask(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	issuer, audiences, err := a.ask(asking)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err = err; err != nil {
		log.From(ctx).Warn("bots cannot work yet", zap.Error(err))
		return err
	}
	a.issuer, a.audiences = issuer, audiences
	return nil
}

// Issuer is the issuer of kcp's tokens, or empty until it is known.
func (a *Accounts) Issuer() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issuer
}

// Audiences are those of a token of a Bot. The error is for clients.
func (a *Accounts) Audiences() ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.issuer == "" {
		return nil, errs.Wrap(errs.Unavailable, a.err,
			"kcp does not issue tokens for bots at the moment; try again, or ask the operator").After(firstRetry)
	}
	return a.audiences, nil
}

// Err returns why bots do not work, or nil. It is for operators.
func (a *Accounts) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// AskLookup asks kcp once whether it looks up what a token is bound to, and logs what that means for
// tokens that are revoked. It needs the facts of Ask.
func (a *Accounts) AskLookup(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout+lookupTime)
	defer cancel()
	looksUp, err := a.looksUp(asking)
	if err != nil {
		log.From(ctx).Info("it is not known yet whether kcp looks up the accounts of tokens", zap.Error(err))
		return err
	}
	a.mu.Lock()
	a.skipsLookup = !looksUp
	a.mu.Unlock()
	if looksUp {
		log.From(ctx).Info("kcp looks up the accounts of tokens: a revoked token of a bot ends in kcp, too")
		return nil
	}
	log.From(ctx).Warn(errNoLookup.Error())
	return nil
}

var errNoLookup = errors.New("kcp does not look up the accounts of tokens: the hub refuses a revoked token of a bot, but kcp itself accepts it until it expires; " +
	"run kcp without --service-account-lookup=false, or let nobody but the hub reach it")

// LookupErr returns what follows from a kcp that does not look accounts up, or nil. It is for
// operators.
func (a *Accounts) LookupErr() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.skipsLookup {
		return errNoLookup
	}
	return nil
}

// looksUp reports whether kcp refuses a token that is bound to a Secret after the Secret was deleted.
func (a *Accounts) looksUp(ctx context.Context) (bool, error) {
	secrets := a.clients.Secrets(a.cluster, namespace)
	held, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: probe, Namespace: namespace}}, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	if apierrors.IsAlreadyExists(err) {
		// It is of a hub that was killed, or of another replica, which deletes it like this one.
		held, err = secrets.Get(ctx, probe, metav1.GetOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("create a Secret: %w", err)
	}
	token, err := a.token(ctx, authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: held.Name, UID: held.UID},
	})
	if err != nil {
		return false, err
	}
	if err := secrets.Delete(ctx, probe, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("delete a Secret: %w", err)
	}
	for deadline := a.clock.Now().Add(lookupTime); ; {
		accepted, err := a.accepts(ctx, token)
		if err != nil || !accepted {
			return !accepted, err
		}
		if !a.clock.Now().Before(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-a.clock.After(lookupPoll):
		}
	}
}

// accepts reports whether kcp accepts a token.
func (a *Accounts) accepts(ctx context.Context, token string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	err := a.clients.REST(a.clients.ClusterURL(a.cluster), authenticationv1.SchemeGroupVersion).Post().
		Resource("tokenreviews").Body(review).Do(ctx).Into(review)
	if err != nil {
		return false, fmt.Errorf("ask kcp whether it accepts tokens of ServiceAccounts: %w", err)
	}
	return review.Status.Authenticated, nil
}

// Keys gets the public keys of kcp's tokens, as a JSON Web Key Set. Each shard may sign with keys of
// its own: others are logical clusters on the other shards, those of one shard together. kcp refuses every request in a
// deactivated one, so the next one of its shard is asked then. With an error, the keys are those of the shards that answer.
func (a *Accounts) Keys(ctx context.Context, others ...[]string) ([]byte, error) {
	clusters := [][]string{{a.cluster}}
	for _, of := range others {
		if !slices.Contains(of, a.cluster) {
			clusters = append(clusters, of[:min(len(of), maxAsked)])
		}
	}
	// They are asked at once: a shard that does not answer must not take the time of the others.
	sets, failures := make([]keySet, len(clusters)), make([]error, len(clusters), len(clusters)+1)
	var asked sync.WaitGroup
	for i, of := range clusters {
		asked.Go(func() { sets[i], failures[i] = a.keysOfShard(ctx, of) })
	}
	asked.Wait()
	set := keySet{Keys: []json.RawMessage{}}
	for _, of := range sets {
		set.Keys = append(set.Keys, of.Keys...)
	}
	raw, err := json.Marshal(set)
	return raw, errors.Join(append(failures, err)...)
}

// keySet is a JSON Web Key Set.
type keySet struct {
	Keys []json.RawMessage `json:"keys"`
}

// errRefused says that kcp refuses a request.
var errRefused = errors.New("kcp answers")

// keysOfShard gets the keys of the shard on which all of some logical clusters lie.
func (a *Accounts) keysOfShard(ctx context.Context, clusters []string) (set keySet, err error) {
	for _, cluster := range clusters {
		if set, err = a.keysOf(ctx, cluster); !errors.Is(err, errRefused) {
			break
		}
	}
	return set, err
}

// keysOf gets the keys of the shard that a logical cluster lies on. The error is errRefused for an answer without keys.
func (a *Accounts) keysOf(ctx context.Context, cluster string) (set keySet, err error) {
	client, _ := a.clients.HTTP()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.clients.ClusterURL(cluster)+"/openid/v1/jwks", http.NoBody)
	if err != nil {
		return set, err
	}
	response, err := client.Do(r)
	if err != nil {
		return set, fmt.Errorf("get the keys of kcp's ServiceAccount tokens: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxKeys))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w %s", errRefused, response.Status)
	}
	if err == nil {
		err = json.Unmarshal(raw, &set)
	}
	if err != nil {
		return keySet{}, fmt.Errorf("get the keys of kcp's ServiceAccount tokens: %w; kcp needs --service-account-issuer and --service-account-key-file", err)
	}
	return set, nil
}

func (a *Accounts) ask(ctx context.Context) (issuer string, audiences []string, err error) {
	if err := a.account(ctx); err != nil {
		return "", nil, err
	}
	// Without audiences in the request kcp takes its own.
	token, err := a.token(ctx, authenticationv1.TokenRequestSpec{})
	if err != nil {
		return "", nil, err
	}
	issuer, own, err := claimsOf(token)
	if err != nil {
		return "", nil, err
	}
	audiences = append([]string{a.audience}, own...)
	if token, err = a.token(ctx, authenticationv1.TokenRequestSpec{Audiences: audiences}); err != nil {
		return "", nil, err
	}
	switch accepted, err := a.accepts(ctx, token); {
	case err != nil:
		return "", nil, err
	case !accepted:
		return "", nil, errors.New("kcp does not accept tokens of its own ServiceAccounts: give it --service-account-key-file with the public key of --service-account-signing-key-file, and the same --service-account-issuer and --api-audiences on all shards")
	}
	_, err = a.Keys(ctx)
	return issuer, audiences, err
}

// account creates the account that the hub asks with, and its namespace.
func (a *Accounts) account(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := a.clients.Namespaces(a.cluster).Create(ctx, ns, metav1.CreateOptions{FieldManager: kcp.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace of the hub's ServiceAccount: %w", err)
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, AutomountServiceAccountToken: ptr.To(false)}
	if _, err := a.clients.ServiceAccounts(a.cluster, namespace).Create(ctx, sa, metav1.CreateOptions{FieldManager: kcp.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the hub's ServiceAccount: %w", err)
	}
	return nil
}

func (a *Accounts) token(ctx context.Context, spec authenticationv1.TokenRequestSpec) (string, error) {
	spec.ExpirationSeconds = ptr.To[int64](life)
	issued, err := a.clients.RequestToken(ctx, a.cluster, namespace, name, &authenticationv1.TokenRequest{Spec: spec})
	if err != nil {
		return "", fmt.Errorf("ask kcp for a token of a ServiceAccount, which needs --service-account-signing-key-file: %w", err)
	}
	return issued.Status.Token, nil
}

// claimsOf reads the issuer and the audiences of a token that kcp issued a moment ago.
func claimsOf(token string) (issuer string, audiences []string, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", nil, errors.New("kcp's ServiceAccount token is not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", nil, errors.New("kcp's ServiceAccount token is not a JWT")
	}
	var claims struct {
		Issuer    string   `json:"iss"`
		Audiences []string `json:"aud"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil || claims.Issuer == "" {
		return "", nil, errors.New("kcp's ServiceAccount token names no issuer; give it --service-account-issuer")
	}
	return claims.Issuer, claims.Audiences, nil
}
