package workspace

import (
	"encoding/json"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// object is a kcp Workspace with the hub's common status.
type object struct {
	*kcptenancyv1alpha1.Workspace
	common v1alpha1.CommonStatus
}

func objectOf(ws *kcptenancyv1alpha1.Workspace) *object {
	o := &object{Workspace: ws, common: tenancy.WorkspaceOf("", ws).Status}
	if _, ok := ws.Annotations[v1alpha1.StatusAnnotation]; !ok {
		o.common = v1alpha1.CommonStatus{}
	}
	return o
}

func (o *object) copy() *object {
	return &object{Workspace: o.Workspace.DeepCopy(), common: *o.common.DeepCopy()}
}

// encode writes the common status to its annotation and omits the status of kcp.
func (o *object) encode() ([]byte, error) {
	ws := o.Workspace.DeepCopy()
	ws.Status = kcptenancyv1alpha1.WorkspaceStatus{}
	if len(o.common.Conditions) > 0 {
		status, err := json.Marshal(o.common)
		if err != nil {
			return nil, err
		}
		if ws.Annotations == nil {
			ws.Annotations = map[string]string{}
		}
		ws.Annotations[v1alpha1.StatusAnnotation] = string(status)
	}
	return json.Marshal(ws)
}
