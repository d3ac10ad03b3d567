package external

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/restore"
)

const (
	// headName is the name of the Secret with the State, and the beginning of the names of its chunks.
	headName = "kedge-hub-restore"
	// format is the version of what is stored, and the only one that this package reads.
	format = 1
	// maxChanges is the number of times that a change of the head is tried while others change it.
	maxChanges = 10
)

// ErrReplaced means that kcp has another order since, or none.
var ErrReplaced = errors.New("kedge-hub restore has given another order since, or kcp was restored again")

// ErrNone means that there is no order.
var ErrNone = errors.New("kcp has no report of a restore: there was none, or its purges were released")

// State says how far a restore is.
type State struct {
	Format int `json:"format"`
	// Phase is empty if nothing was restored, or if purges were released since.
	Phase restore.Phase `json:"phase"`
	// ID is that of the order, also of one whose purges were released. A hub that had an order, and finds another ID or
	// none, does not know what became of it.
	ID string `json:"id"`
	// Plan and Report are the documents of the order.
	Plan   document `json:"plan"`
	Report document `json:"report"`
	// Before is what an order replaces that is not whole.
	Before *State `json:"before,omitempty"`
}

// Replaying reports whether something is left to do before a hub serves.
func (s State) Replaying() bool { return s.Phase != "" && s.Phase.Before(restore.PhaseHeld) }

// Orders are what kcp has of restores, one at most.
type Orders struct {
	clients *kcp.Clients
	secrets *kcp.Client[*corev1.Secret]
}

// New returns the Orders in the logical cluster of the root workspace of a tree.
func New(clients *kcp.Clients, cluster string) *Orders {
	return &Orders{clients: clients, secrets: clients.Secrets(cluster, metav1.NamespaceDefault)}
}

// State returns how far the restore is. It is empty if there is none.
func (o *Orders) State(ctx context.Context) (State, error) {
	s, _, err := o.head(ctx)
	return s, err
}

func (o *Orders) head(ctx context.Context) (s State, held *corev1.Secret, err error) {
	held, err = o.secrets.Get(ctx, headName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return State{}, nil, nil
	}
	if err != nil {
		return State{}, nil, fmt.Errorf("read the order of kedge-hub restore: %w", err)
	}
	if err := json.Unmarshal(held.Data[dataField], &s); err != nil {
		return State{}, nil, fmt.Errorf("read the order of kedge-hub restore: %w", err)
	}
	if s.Format != format {
		return State{}, nil, fmt.Errorf("the order of kedge-hub restore has the format %d, and this version reads %d: "+
			"use the same version for the command and the hubs", s.Format, format)
	}
	return s, held, nil
}

// change changes the head by compare-and-swap. change returns false where there is nothing to change.
func (o *Orders) change(ctx context.Context, change func(s *State) (bool, error)) (State, error) {
	for try := 1; ; try++ {
		s, held, err := o.head(ctx)
		if err != nil {
			return State{}, err
		}
		if changes, err := change(&s); err != nil || !changes {
			return s, err
		}
		raw, err := json.Marshal(s)
		if err != nil {
			return State{}, err
		}
		if held == nil {
			made := &corev1.Secret{Data: map[string][]byte{dataField: raw}}
			made.Name, made.Namespace = headName, metav1.NamespaceDefault
			_, err = o.secrets.Create(ctx, made, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		} else {
			held.Data = map[string][]byte{dataField: raw}
			_, err = o.secrets.Update(ctx, held, metav1.UpdateOptions{FieldManager: kcp.FieldManager})
		}
		switch {
		case err == nil:
			return s, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || try == maxChanges:
			return State{}, fmt.Errorf("write the order of kedge-hub restore: %w", err)
		}
	}
}

// Begin begins an order, and replaces another one when the new one is whole. From then on no hub serves that starts. It
// returns the ID.
func (o *Orders) Begin(ctx context.Context) (id string, err error) {
	id = rand.Text()
	_, err = o.change(ctx, func(s *State) (bool, error) {
		if s.ID == id {
			// The answer to the first attempt was lost.
			return false, nil
		}
		before := *s
		*s = State{Format: format, Phase: restore.PhaseWriting, ID: id, Before: &before}
		return true, nil
	})
	return id, err
}

// Complete gives the order that was begun.
func (o *Orders) Complete(ctx context.Context, id string, plan restore.Plan) error {
	d, err := o.write(ctx, plan)
	if err != nil {
		return err
	}
	s, err := o.change(ctx, func(s *State) (bool, error) {
		if s.ID != id {
			return false, ErrReplaced
		}
		s.Phase, s.Plan, s.Before = restore.PhaseOrdered, d, nil
		return true, nil
	})
	switch {
	case errors.Is(err, ErrReplaced):
		return errors.Join(err, o.drop(ctx, d))
	case err != nil:
		return err
	}
	return o.prune(ctx, s)
}

// Withdraw ends an order that was begun, and puts back what it would have replaced. What that has written stays: its hubs
// may write more at the same time.
func (o *Orders) Withdraw(ctx context.Context, id string) error {
	_, err := o.change(ctx, func(s *State) (bool, error) {
		if s.ID != id || s.Before == nil {
			return false, ErrReplaced
		}
		*s = *s.Before
		s.Format = format
		return true, nil
	})
	return err
}

// Release lets purges run again, and removes the order and its report. It is an error while hubs do not serve.
func (o *Orders) Release(ctx context.Context) error {
	s, err := o.change(ctx, func(s *State) (bool, error) {
		if s.Replaying() {
			return false, errors.New("the hubs have not ended yet what ended after the backup; repeat this when they serve")
		}
		changes := s.Phase != ""
		*s = State{Format: format, ID: s.ID}
		return changes, nil
	})
	if err != nil {
		return err
	}
	return o.prune(ctx, s)
}

// Plan returns what is ordered.
func (o *Orders) Plan(ctx context.Context, s State) (p restore.Plan, err error) {
	return p, o.read(ctx, s.Plan, &p)
}

// Report returns the report as it is now, with its Plan. It fails with ErrNone if there is no order.
func (o *Orders) Report(ctx context.Context) (r restore.Report, err error) {
	for try := 1; ; try++ {
		r, err = o.report(ctx)
		// Another replica has replaced it meanwhile.
		if !apierrors.IsNotFound(err) || try == maxChanges {
			return r, err
		}
	}
}

func (o *Orders) report(ctx context.Context) (r restore.Report, err error) {
	s, err := o.State(ctx)
	switch {
	case err != nil:
		return r, err
	case s.Plan.ID == "":
		return r, ErrNone
	case s.Report.ID != "":
		if err := o.read(ctx, s.Report, &r); err != nil {
			return r, err
		}
	}
	r.Plan, err = o.Plan(ctx, s)
	return r, err
}

// Save stores the report of an order, and that it has reached a phase. Where another replica is further, it does nothing.
// It fails with ErrReplaced if that order is not there any more.
func (o *Orders) Save(ctx context.Context, id string, r restore.Report, phase restore.Phase) error {
	// It is in a document of its own.
	r.Plan = restore.Plan{}
	d, err := o.write(ctx, r)
	if err != nil {
		return err
	}
	unused := document{}
	_, err = o.change(ctx, func(s *State) (bool, error) {
		unused = d
		switch {
		case s.ID != id:
			return false, ErrReplaced
		case s.Phase == "" || phase.Before(s.Phase):
			return false, nil
		}
		unused = s.Report
		s.Phase, s.Report = phase, d
		return true, nil
	})
	if err != nil && !errors.Is(err, ErrReplaced) {
		// It can be written nevertheless. What is not used is removed with the order.
		return err
	}
	return errors.Join(err, o.drop(ctx, unused))
}
