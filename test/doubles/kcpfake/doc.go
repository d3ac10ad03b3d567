// Package kcpfake is a kcp in memory for unit tests: an HTTPS server that keeps
// the objects of every logical cluster. Only tests import it.
//
// It has the semantics that the hub relies on: resource versions, UIDs,
// generations, generateName, preconditions and conflicts, merge patches, JSON
// patches and server-side apply, finalizers, the status subresource, lists with
// selectors and pages, watches, discovery, and the refusal of requests to a logical
// cluster that is marked inactive. It serves any resource; those of kcp.NewScheme
// are known by kind from the start, any other from its first object.
//
// It has no admission, no RBAC, no schemas and no controllers: a test does their
// work with Put and Remove. Each URL prefix before "/clusters/", such as that
// of a virtual workspace, serves the same objects, and "/clusters/*" serves those of
// all logical clusters.
package kcpfake
