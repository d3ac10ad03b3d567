package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/session"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const idle = time.Hour

// world has a person with Sessions and Secrets about logins, and records what is written.
type world struct {
	clock *clocktesting.FakePassiveClock
	// behind is how much earlier it may be at kcp.
	behind   time.Duration
	users    map[string]*v1alpha1.User
	stored   map[string]*v1alpha1.User
	sessions []*v1alpha1.Session
	secrets  []*corev1.Secret
}

func newWorld() *world {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	alice := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice", CreationTimestamp: metav1.NewTime(now)}}
	return &world{
		clock:  clocktesting.NewFakePassiveClock(now),
		users:  map[string]*v1alpha1.User{"alice": alice},
		stored: map[string]*v1alpha1.User{"alice": alice},
	}
}

// login adds a Session of alice whose token lives half an hour, and her grant.
func (w *world) login(name string) *v1alpha1.Session {
	now := w.clock.Now()
	s := &v1alpha1.Session{Spec: v1alpha1.SessionSpec{
		UserRef: v1alpha1.NamedRef{Name: "alice"}, Client: v1alpha1.SessionCLI, Generation: 1, LastUsedAt: metav1.NewTime(now), ExpiresAt: metav1.NewTime(now.Add(24 * time.Hour)),
		Tokens: []v1alpha1.SessionToken{{Hash: "h", ExpiresAt: metav1.NewTime(now.Add(30 * time.Minute))}},
	}}
	s.Name, s.CreationTimestamp, s.Finalizers = name, metav1.NewTime(now), []string{v1alpha1.CascadeFinalizer}
	w.sessions = append(w.sessions, s)
	w.secrets = []*corev1.Secret{tenancy.ProviderGrant{User: "alice", Sealed: []byte("x"), SavedAt: now}.Secret()}
	return s
}

func (w *world) earliest() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(w.clock.Now().Add(-w.behind))
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// reconcile returns when the key is looked at again, and what was written.
func (w *world) reconcile(t *testing.T, name string) (time.Duration, []string) {
	t.Helper()
	k := kcptest.New(t)
	for _, u := range w.stored {
		k.Put(kcptest.Users, u)
	}
	for _, s := range w.sessions {
		k.Put(kcptest.Users, s)
	}
	for _, s := range w.secrets {
		s.Namespace = tenancy.DefaultNamespace
		k.Put(kcptest.Users, s)
	}
	result, err := session.Sessions{
		RightsClock: w.clock, Clock: w.earliest(), Idle: idle, Sessions: k.Stored.Sessions, Users: k.Stored.Users, Secrets: k.Stored.Secrets, Cluster: kcptest.Users,
		Of:     func(string) []*v1alpha1.Session { return w.sessions },
		ByName: func(name string) (*v1alpha1.User, bool) { u, ok := w.users[name]; return u, ok },
	}.Reconcile(t.Context(), controller.Key{Cluster: kcptest.Users, Name: name})
	require.NoError(t, err)
	for _, s := range w.sessions {
		k.Read(kcptest.Users, s)
	}
	var did []string
	for _, write := range k.Writes() {
		switch {
		case write.Verb == "delete":
			did = append(did, "delete "+write.Name)
		case strings.Contains(string(write.Body), "endedAt"):
			did = append(did, "end "+write.Name)
		default:
			var patch v1alpha1.Session
			require.NoError(t, json.Unmarshal(write.Body, &patch))
			did = append(did, fmt.Sprint("finalizers ", patch.Finalizers, " ", write.Name))
		}
	}
	return result.RequeueAfter, did
}

func TestReconcile_looksAgainWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.login("s1")
	after, did := w.reconcile(t, "s1")
	require.Equal(t, idle, after)
	require.Empty(t, did)
	s.Spec.ExpiresAt = metav1.NewTime(w.clock.Now().Add(time.Minute))
	after, _ = w.reconcile(t, "s1")
	require.Equal(t, time.Minute, after)
	s.Spec.Code = &v1alpha1.SessionCode{ExpiresAt: metav1.NewTime(w.clock.Now().Add(time.Second))}
	after, _ = w.reconcile(t, "s1")
	require.Equal(t, time.Second, after)
}

func TestReconcile_endsWhatTheRuleEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"idle":     func(w *world) { w.pass(idle) },
		"rejected": func(w *world) { w.users["alice"].Spec.Registration = v1alpha1.RegistrationRejected },
		"removed":  func(w *world) { w.users, w.stored = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.login("s1")
			_, did := w.reconcile(t, "s1")
			require.Empty(t, did)
			end(w)
			_, did = w.reconcile(t, "s1")
			require.Equal(t, []string{"end s1"}, did)
		})
	}
}

// kcp's clock was set forward. A Session ends by it, and what refuses its tokens, and the login of the person, are kept
// until it is time for sure.
func TestReconcile_endsBeforeItIsSureAndRemovesAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.login("s1")
	w.pass(idle)
	w.behind = idle
	_, did := w.reconcile(t, "s1")
	require.Equal(t, []string{"end s1"}, did)
	after, did := w.reconcile(t, "s1")
	require.Empty(t, did, "a login may have stored the grant just now")
	require.Equal(t, 2*time.Minute, after)
	w.pass(after)
	after, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"delete grant-alice"}, did)
	require.Equal(t, 28*time.Minute+tenancy.TokenLeeway, after)
	w.secrets = nil
	w.pass(after)
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"delete s1"}, did)
}

func TestReconcile_endsTheOldestOfTooManySessions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 101 {
		w.login(fmt.Sprintf("s%03d", i))
	}
	_, did := w.reconcile(t, "s001")
	require.Empty(t, did)
	_, did = w.reconcile(t, "s000")
	require.Equal(t, []string{"end s000"}, did)
	w.pass(time.Second)
	w.sessions[1].Spec.LastUsedAt = metav1.NewTime(w.clock.Now())
	w.login("s101")
	_, did = w.reconcile(t, "s001")
	require.Empty(t, did)
	_, did = w.reconcile(t, "s002")
	require.Equal(t, []string{"end s002"}, did)
}

// The informers of Users and Sessions are two watches.
func TestReconcile_keepsTheSessionOfAUserNotYetCached(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.login("s1")
	w.users = nil
	_, did := w.reconcile(t, "s1")
	require.Empty(t, did)
}

func TestReconcile_removesASessionWithItsLastToken(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.login("s1")
	w.login("s2")
	ended := metav1.NewTime(w.clock.Now())
	s.Spec.EndedAt = &ended
	after, did := w.reconcile(t, "s1")
	require.Empty(t, did)
	require.Equal(t, 30*time.Minute+tenancy.TokenLeeway, after)
	w.pass(after)
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"delete s1"}, did, "the other session has the grant")
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"finalizers [] s1"}, did)
}

// Without the object nothing would refuse the tokens that were handed out through it.
func TestReconcile_keepsADeletedSessionWhileTokensLive(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.login("s1")
	w.login("s2")
	_, did := w.reconcile(t, "s1")
	require.Empty(t, did)
	deleted := metav1.NewTime(w.clock.Now())
	s.DeletionTimestamp, s.Finalizers = &deleted, append(s.Finalizers, "example.com/other")
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"end s1"}, did)
	after, did := w.reconcile(t, "s1")
	require.Empty(t, did)
	require.Equal(t, 30*time.Minute+tenancy.TokenLeeway, after)
	w.pass(after)
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"finalizers [example.com/other] s1"}, did)
	_, did = w.reconcile(t, "s1")
	require.Empty(t, did)
}

func TestReconcile_removesTheGrantWithTheLastSession(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.login("s1")
	ended := metav1.NewTime(w.clock.Now())
	s.Spec.EndedAt, s.Spec.Tokens = &ended, nil
	after, did := w.reconcile(t, "s1")
	require.Empty(t, did, "a login may have stored it just now")
	require.Equal(t, 2*time.Minute, after)
	w.pass(after)
	_, did = w.reconcile(t, "s1")
	require.Equal(t, []string{"delete grant-alice", "delete s1"}, did)
}

func TestReconcile_sweepsWhatFailedLoginsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.login("s1")
	now := w.clock.Now()
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "of-others"}}
	w.secrets = append(w.secrets, other,
		tenancy.ProviderGrant{User: "nobody", SavedAt: now}.Secret(),
		tenancy.DeviceLogin{ID: "early", ExpiresAt: now}.Secret(),
		tenancy.DeviceLogin{ID: "late", ExpiresAt: now.Add(time.Minute)}.Secret())
	_, did := w.reconcile(t, "")
	require.Empty(t, did)
	w.pass(2 * time.Minute)
	_, did = w.reconcile(t, "")
	require.Equal(t, []string{"delete device-early", "delete grant-nobody"}, did)
}

func TestReconcile_leavesIgnoredSessionsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.login("s1")
	s.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
	w.pass(idle)
	_, did := w.reconcile(t, "s1")
	require.Empty(t, did)
	_, did = w.reconcile(t, "gone")
	require.Empty(t, did)
}

// Somebody who begins logins and redeems none could otherwise fill kcp for the life of a token.
func TestSession_isRemovedAtOnceIfNeverRedeemed(t *testing.T) {
	t.Parallel()
	for generation, want := range map[int64][]string{0: {"delete s"}, 1: nil} {
		w := newWorld()
		s, ended := w.login("s"), metav1.NewTime(w.clock.Now())
		s.Spec.EndedAt, s.Spec.Generation = &ended, generation
		w.secrets = nil
		_, did := w.reconcile(t, "s")
		require.Equal(t, want, did, generation)
	}
}
