package kcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomResourceDefinitions returns the names of the CustomResourceDefinitions in a logical
// cluster in alphabetical order, at most limit of them. more is true if there are others. It
// requests the names only, because tenants decide the size of the definitions.
func (c *Clients) CustomResourceDefinitions(ctx context.Context, cluster string, limit int) (names []string, more bool, err error) {
	raw, err := c.REST(c.ClusterURL(cluster), schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}).Get().
		Resource("customresourcedefinitions").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Param("includeObject", string(metav1.IncludeNone)).Param("limit", strconv.Itoa(limit)).
		Do(ctx).Raw()
	if err != nil {
		return nil, false, fmt.Errorf("list the CustomResourceDefinitions of %s: %w", cluster, err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, false, fmt.Errorf("parse the CustomResourceDefinitions of %s: %w", cluster, err)
	}
	if len(table.ColumnDefinitions) == 0 || table.ColumnDefinitions[0].Format != "name" {
		// An empty list would remove rights, so another answer is an error.
		return nil, false, fmt.Errorf("list the CustomResourceDefinitions of %s: the answer is not a table of names", cluster)
	}
	for _, row := range table.Rows {
		if len(row.Cells) > 0 {
			if name, ok := row.Cells[0].(string); ok {
				names = append(names, name)
			}
		}
	}
	return names, table.Continue != "", nil
}
