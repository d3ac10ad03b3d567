package kcp

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Documents splits a YAML stream at its "---" lines and leaves out documents that hold
// nothing but comments.
func Documents(stream []byte) [][]byte {
	var out [][]byte
	for _, document := range bytes.Split(stream, []byte("\n---\n")) {
		var any map[string]any
		if err := yaml.Unmarshal(document, &any); err != nil || len(any) > 0 {
			out = append(out, document)
		}
	}
	return out
}

// Parse returns the object of a YAML or JSON document.
func Parse(document []byte) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("parse the object: %w", err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("parse the object: %w", err)
	}
	return o, nil
}
