package main

import (
	"context"
	"io"
	"net/http"

	"github.com/faroshq/kedge-hub/test/framework"
)

// listedObjects ConfigMaps of listedSize bytes are what the floods of lists and watches read.
const listedObjects, listedSize = 200, 100 << 10

// prepareLists makes the objects that are listed.
func prepareLists(s *flooder) error {
	for range listedObjects {
		if err := s.establish(s.creating(generated(listedSize))); err != nil {
			return err
		}
	}
	return nil
}

// list lists all objects, without a limit.
func list(s *flooder, _, _ int) framework.Call {
	return framework.Call{As: flooderName, Method: http.MethodGet, Path: configMaps(s.Workspace.ClusterID)}
}

// watch opens a watch with all objects, and keeps it open as long as the flood lasts.
func watch(ctx context.Context, s *flooder, stream, _ int) (int, error) {
	c := list(s, 0, 0)
	c.Path += "?watch=true"
	response, err := s.open(ctx, stream, c)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	// The end of the flood ends it, and so may the hub.
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, nil
}
