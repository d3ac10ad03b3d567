package main

import (
	"context"
	"slices"

	"github.com/faroshq/kedge-hub/test/framework"
)

// wallFlood is one kind of flood.
type wallFlood struct {
	name, about string
	// streams is the number of requests that are open at the same time.
	streams int
	// prepare makes what the flood needs, if it needs anything.
	prepare func(*flooder) error
	// step sends one request, or a few that belong together, and returns the code of the last answer.
	step func(ctx context.Context, s *flooder, stream, turn int) (code int, err error)
}

// wallFloods are all kinds of floods.
func wallFloods() []wallFlood {
	return []wallFlood{
		{"objects", "small ConfigMaps are created", 64, nil, asking(createObject)},
		{"bytes", "ConfigMaps of half a MiB are created", 64, nil, asking(createLarge)},
		{"crds", "CustomResourceDefinitions are created", 32, nil, asking(createDefinition)},
		{"bindings", "APIBindings of one export are created", 32, prepareExport, asking(bindExport)},
		{"lists", "20 MB of ConfigMaps are listed without a limit", 300, prepareLists, asking(list)},
		{"watches", "watches of 20 MB of ConfigMaps are opened and kept", 300, prepareLists, watch},
		{"leaving", "the only admin of an Organization sends DELETE memberships/me", 64, nil, asking(leave)},
		{"patches", "one ConfigMap of 100 KiB is patched", 64, prepareHotKey, asking(patchHotKey)},
		{"toggles", "a setting of an Organization is changed and changed back", 64, nil, asking(toggle)},
		{"roles", "Roles are created and deleted", 64, nil, asking(loopRole)},
		{"audit", "proxied writes that change nothing fill the audit log", 64, prepareHotKey, asking(patchNothing)},
		{"logins", "strangers from 40 networks send requests under /auth", networks, nil, asking(askAsStranger)},
	}
}

func floodNames() (names []string) {
	for _, f := range wallFloods() {
		names = append(names, f.name)
	}
	return names
}

// floodNamed returns a flood whose name was checked.
func floodNamed(name string) wallFlood {
	all := wallFloods()
	return all[slices.Index(floodNames(), name)]
}

// asking is the step of a flood that sends one request. Streams use the hubs in turn.
func asking(call func(s *flooder, stream, turn int) framework.Call) func(context.Context, *flooder, int, int) (int, error) {
	return func(ctx context.Context, s *flooder, stream, turn int) (int, error) {
		return s.send(ctx, stream, call(s, stream, turn))
	}
}
