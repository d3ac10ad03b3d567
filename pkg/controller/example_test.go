package controller_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

// workspaceStep makes an Org's workspace. It takes funcs, not clients.
type workspaceStep struct {
	exists func(org string) bool
	create func(ctx context.Context, org string) error
}

func (*workspaceStep) Condition() string { return v1alpha1.ConditionWorkspaceReady }

func (s *workspaceStep) Reconcile(ctx context.Context, o *v1alpha1.Organization) (controller.Result, error) {
	if s.exists(o.Name) {
		return controller.Result{}, nil
	}
	return controller.Result{Message: "the workspace is being made", Stop: true}, s.create(ctx, o.Name)
}

func ExampleReconcile() {
	acme := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "u", ResourceVersion: "7", Generation: 1}}
	work := controller.Reconcile(controller.Kind[*v1alpha1.Organization]{
		Get:    func(controller.Key) (*v1alpha1.Organization, bool) { return acme, true },
		Copy:   (*v1alpha1.Organization).DeepCopy,
		Status: func(o *v1alpha1.Organization) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch: func(_ context.Context, key controller.Key, _ []byte, subresource string) error {
			fmt.Println("patch the", subresource, "of", key)
			return nil
		},
		Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
	}, &workspaceStep{
		exists: func(string) bool { return false },
		create: func(_ context.Context, org string) error {
			fmt.Println("create the workspace of", org)
			return nil
		},
	})
	// A controller gives it to New and calls Enqueue from its subscriptions to the views.
	if _, err := work(context.Background(), controller.Key{Cluster: "orgs", Name: "acme"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// create the workspace of acme
	// patch the status of orgs|acme
}
