package main

import (
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/test/framework"
)

// configMaps is the path of the ConfigMaps of a logical cluster.
func configMaps(cluster string) string {
	return "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps"
}

func configMap(name, data string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]string{"x": data},
	}
}

// generated is a ConfigMap that kcp gives a new name.
func generated(size int) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"flood-"},"data":{"x":"` +
		strings.Repeat("x", size) + `"}}`
}

// posting creates an object in the Workspace of the flooder.
func (s *flooder) posting(below string, body any) framework.Call {
	return framework.Call{As: flooderName, Method: http.MethodPost, Path: "/clusters/" + s.Workspace.ClusterID + below, Body: body}
}

// creating creates a ConfigMap.
func (s *flooder) creating(body any) framework.Call {
	return framework.Call{As: flooderName, Method: http.MethodPost, Path: configMaps(s.Workspace.ClusterID), Body: body}
}

func createObject(s *flooder, _, _ int) framework.Call { return s.creating(generated(10)) }

// halfMebibyte is a large object that kcp takes.
var halfMebibyte = generated(512 << 10)

func createLarge(s *flooder, _, _ int) framework.Call { return s.creating(halfMebibyte) }
