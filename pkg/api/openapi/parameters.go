package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// parameter is a parameter, or a reference to one.
type parameter struct {
	Ref  string `json:"$ref"`
	Name string `json:"name"`
	In   string `json:"in"`
}

type operation struct {
	Parameters []parameter `json:"parameters"`
}

// pathItem is what a path has: its operations, and the parameters that all of them have.
type pathItem struct {
	operation
	Get    *operation `json:"get"`
	Post   *operation `json:"post"`
	Put    *operation `json:"put"`
	Patch  *operation `json:"patch"`
	Delete *operation `json:"delete"`
}

// parametersIn returns the query parameters of the operations of a document in JSON. A path of the document is the pattern
// of its route.
func parametersIn(document []byte) (httpapi.Parameters, error) {
	var parsed struct {
		Paths      map[string]pathItem `json:"paths"`
		Components struct {
			Parameters map[string]parameter `json:"parameters"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, err
	}
	all := httpapi.Parameters{}
	for path, item := range parsed.Paths {
		for method, o := range map[string]*operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		} {
			if o == nil {
				continue
			}
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				if p.Ref != "" {
					found, ok := parsed.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
					if !ok {
						return nil, fmt.Errorf("%s %s: there is no %s", method, path, p.Ref)
					}
					p = found
				}
				if p.In == "query" {
					all[method+" "+path] = append(all[method+" "+path], p.Name)
				}
			}
		}
	}
	return all, nil
}
