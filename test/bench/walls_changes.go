package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/test/framework"
)

// hotKey is the object that is patched.
const hotKey = "hot"

func prepareHotKey(s *flooder) error {
	return s.establish(s.creating(configMap(hotKey, "x")))
}

// patchHotKey writes another value of 100 KiB, of which etcd keeps the history.
func patchHotKey(s *flooder, stream, turn int) framework.Call {
	value := strings.Repeat(fmt.Sprintf("%06d,%06d;", stream, turn), 100<<10/14)
	return patchHot(s, `{"data":{"x":"`+value+`"}}`)
}

// patchNothing changes nothing, and is a line of the audit log.
func patchNothing(s *flooder, _, _ int) framework.Call { return patchHot(s, `{"data":{"x":"x"}}`) }

func patchHot(s *flooder, body string) framework.Call {
	return framework.Call{
		As: flooderName, Method: http.MethodPatch, Path: configMaps(s.Workspace.ClusterID) + "/" + hotKey, Body: body,
		Header: http.Header{"Content-Type": {"application/merge-patch+json"}},
	}
}

// loopRole creates a Role, and deletes it the next time.
func loopRole(s *flooder, stream, turn int) framework.Call {
	name := fmt.Sprintf("flood-%d", stream)
	c := s.posting("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}},
	})
	if turn%2 == 1 {
		c.Method, c.Path, c.Body = http.MethodDelete, c.Path+"/"+name, nil
	}
	return c
}
