package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/verify"
)

// VerifyOptions are those of Verify.
type VerifyOptions struct {
	// Repair has the controllers of the running hub heal what they can.
	Repair bool
	// JSON is the form of the report.
	JSON bool
	// Timeout bounds the time until it is known that nothing can be compared.
	Timeout time.Duration
}

// errDifferences says that there are differences. They were printed.
var errDifferences = errors.New("what is derived differs from what it follows from")

// Verify compares what kcp has with what the hub would make of it, and prints the report. It asks the hub that
// runs with the data folder, or else an external kcp. It fails with verify.ErrNotLooked if it could not compare.
func Verify(ctx context.Context, c Config, o VerifyOptions, out io.Writer) error {
	report, err := askToVerify(ctx, c, o)
	switch {
	case errors.Is(err, errNoHub) && o.Repair:
		err = fmt.Errorf("%w: --repair needs a running hub, and %w; start it, and give the same flags", verify.ErrNotLooked, err)
	case errors.Is(err, errNoHub) && c.Embedded:
		err = fmt.Errorf("%w: %w, and the embedded kcp runs in the hub alone; start the hub, or give --kcp-kubeconfig", verify.ErrNotLooked, err)
	case errors.Is(err, errNoHub):
		report, err = verifyKCP(ctx, c, o.Timeout)
	}
	if err != nil {
		return err
	}
	if !o.JSON {
		report.Print(out)
	} else if err := json.NewEncoder(out).Encode(report); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return errDifferences
	}
	return nil
}

const verifyPath = "/verify"

// verified is the answer of the socket. It begins before the look ends, so that an asker sees that there is a
// hub.
type verified struct {
	verify.Report
	Failure string `json:"failure,omitempty"`
}

func askToVerify(ctx context.Context, c Config, o VerifyOptions) (verify.Report, error) {
	method := http.MethodGet
	if o.Repair {
		method = http.MethodPost
	}
	answer, err := askLocal(ctx, localSocket(c), method, verifyPath+"?"+url.Values{"timeout": {o.Timeout.String()}}.Encode(), o.Timeout)
	if errors.Is(err, errNoHub) {
		return verify.Report{}, err
	}
	if err != nil {
		return verify.Report{}, fmt.Errorf("%w: ask the running hub: %w", verify.ErrNotLooked, err)
	}
	defer func() { _ = answer.Body.Close() }()
	var v verified
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		return verify.Report{}, fmt.Errorf("%w: the running hub answered %s: %w", verify.ErrNotLooked, answer.Status, err)
	}
	if v.Failure != "" {
		return verify.Report{}, fmt.Errorf("%w: the running hub says: %s", verify.ErrNotLooked, v.Failure)
	}
	return v.Report, nil
}

// verify answers the operator's socket.
func (a *assembly) verify(w http.ResponseWriter, r *http.Request, repairs bool) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	v := verified{}
	var err error
	if v.Report, err = a.look(r, repairs); err != nil {
		v.Failure = err.Error()
	}
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.From(r.Context()).Debug("nobody reads the report of verify any more", zap.Error(err))
	}
}

func (a *assembly) look(r *http.Request, repairs bool) (verify.Report, error) {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return verify.Report{}, fmt.Errorf("timeout: %q is not a duration above zero", r.URL.Query().Get("timeout"))
	}
	// Each look reads all of kcp.
	if !a.looking.TryLock() {
		return verify.Report{}, errors.New("another look is under way; repeat this when it has ended")
	}
	defer a.looking.Unlock()
	var repair func(verify.Difference) error
	if repairs {
		if err := a.leader.Allowed(); err != nil {
			return verify.Report{}, fmt.Errorf("%w: ask the replica with kedge_leader 1 for a repair", err)
		}
		repair = a.repair
	}
	return verify.Look(r.Context(), verify.Source{
		Deps: reconciler.Deps{
			Clients: a.clients, Clusters: a.clusters,
			Settings: settings(a.hub.config, a.clock, a.spareHash, func() bool { return false }),
		},
		Admin: a.shardAdmin, Sharded: a.sharded, Clock: transport.Current(a.clock), Timeout: timeout, Settle: verify.Settle,
	}, repair)
}

// repair has a controller look at a difference.
func (a *assembly) repair(d verify.Difference) error {
	all := append(slices.Clone(a.leading), a.spares)
	i := slices.IndexFunc(all, func(c *controller.Controller) bool { return c.Name() == d.Heals })
	if i < 0 {
		return fmt.Errorf("there is no controller %s", d.Heals)
	}
	all[i].EnqueueUrgent(d.Key)
	return nil
}

// verifyKCP looks at an external kcp without a hub, and writes nothing.
func verifyKCP(ctx context.Context, c Config, timeout time.Duration) (verify.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := sourceOf(ctx, c, timeout)
	if err != nil {
		return verify.Report{}, fmt.Errorf("%w: --kcp-kubeconfig: %w", verify.ErrNotLooked, err)
	}
	defer s.Clients.Close()
	return verify.Look(ctx, s, nil)
}

func sourceOf(ctx context.Context, c Config, timeout time.Duration) (s verify.Source, err error) {
	finding, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	clients, err := connect.Clients(ctx, c.KCP())
	if err != nil {
		return s, err
	}
	clusters, err := bootstrap.Find(finding, clients, c.Tree)
	if err != nil {
		return s, err
	}
	_, host := clients.HTTP()
	admin, sharded, err := connect.ShardAdminClients(ctx, c.KCP(), clients, host)
	if err != nil {
		return s, err
	}
	names, err := connect.Usernames(finding, clients, admin)
	if err != nil {
		return s, err
	}
	if clusters.WorkspacePolicy, err = tenancy.NewPolicy(names...); err != nil {
		return s, err
	}
	hash, err := spareHashOf(c, clusters)
	if err != nil {
		return s, err
	}
	now := clients.Transport().Clock(c.Clock)
	return verify.Source{
		Deps:  reconciler.Deps{Clients: clients, Clusters: clusters, Settings: settings(c, now, hash, func() bool { return false })},
		Admin: admin, Sharded: sharded, Clock: transport.Current(now), Timeout: timeout, Settle: verify.Settle,
	}, nil
}
