package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
)

const (
	// lockTimeout is the maximum wait for the lock of the file, and lockPoll the interval at
	// which it is tried.
	lockTimeout = 5 * time.Second
	lockPoll    = 50 * time.Millisecond
)

// Path is the file that a merge changes: the first that $KUBECONFIG names, or .kube/config in
// config.Home. It fails without both.
func Path(getenv func(string) string) (string, error) {
	for _, path := range filepath.SplitList(getenv("KUBECONFIG")) {
		if path != "" {
			return path, nil
		}
	}
	home := config.Home(getenv)
	if home == "" {
		return "", errors.New("no home folder; name the file with $KUBECONFIG")
	}
	return filepath.Join(home, ".kube", "config"), nil
}

// Merge puts entries into a file. Entries of others stay; one that has the name of a new entry
// makes that take a longer name. If use is the UUID of a workspace, its context becomes the
// current one.
func Merge(ctx context.Context, path string, entries []*Entry, use string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if raw, err = merged(raw, entries, use); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return config.WriteFile(path, raw)
}

// lock takes the lock file of a kubeconfig, as kubectl config does.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	path += ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockTimeout, fmt.Errorf("another program changes the kubeconfig; if none does, remove %s", path))
	defer cancel()
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { _ = os.Remove(path) }, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

var errForeign = errors.New("it is not a kubeconfig that kedge can change; nothing was changed")

// merged is the content of a file with the entries.
func merged(raw []byte, entries []*Entry, use string) ([]byte, error) {
	var known clientcmdv1.Config
	if err := yaml.Unmarshal(raw, &known); err != nil {
		return nil, errForeign
	}
	document, root, err := parse(raw)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := e.chooseName(&known); err != nil {
			return nil, err
		}
		for _, item := range []struct {
			list, field string
			value       any
		}{{"clusters", "cluster", e.cluster}, {"contexts", "context", e.context}, {"users", "user", e.user}} {
			if err := set(root, item.list, item.field, e.Name, item.value); err != nil {
				return nil, err
			}
		}
		// The names of the next entries must differ.
		known.Clusters = append(known.Clusters, clientcmdv1.NamedCluster{Name: e.Name, Cluster: e.cluster})
		known.AuthInfos = append(known.AuthInfos, clientcmdv1.NamedAuthInfo{Name: e.Name, AuthInfo: e.user})
		known.Contexts = append(known.Contexts, clientcmdv1.NamedContext{Name: e.Name, Context: e.context})
		if e.UUID == use {
			*child(root, "current-context") = yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: e.Name}
		}
	}
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(document); err != nil {
		return nil, errForeign
	}
	return out.Bytes(), encoder.Close()
}

// parse reads a kubeconfig, or makes one of an empty file.
func parse(raw []byte) (document, root *yamlv3.Node, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("apiVersion: v1\nkind: Config\n")
	}
	document = &yamlv3.Node{}
	decoder := yamlv3.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != yamlv3.MappingNode {
		return nil, nil, errForeign
	}
	// What follows the first document would be lost.
	if err := decoder.Decode(&yamlv3.Node{}); !errors.Is(err, io.EOF) {
		return nil, nil, errForeign
	}
	return document, document.Content[0], nil
}

// set replaces the field of the item of a name in a list, or appends the item.
func set(root *yamlv3.Node, list, field, name string, value any) error {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	var encoded yamlv3.Node
	if err := yamlv3.Unmarshal(raw, &encoded); err != nil {
		return err
	}
	items := child(root, list)
	if items.Kind == yamlv3.ScalarNode && items.Tag == "!!null" || items.Kind == 0 {
		*items = yamlv3.Node{Kind: yamlv3.SequenceNode, Tag: "!!seq"}
	}
	if items.Kind != yamlv3.SequenceNode {
		return errForeign
	}
	if len(items.Content) == 0 {
		// An empty list is written as [].
		items.Style = 0
	}
	for _, item := range items.Content {
		if item.Kind != yamlv3.MappingNode {
			return errForeign
		}
		if called := find(item, "name"); called != nil && called.Value == name {
			*child(item, field) = *encoded.Content[0]
			return nil
		}
	}
	item := &yamlv3.Node{Kind: yamlv3.MappingNode, Tag: "!!map"}
	*child(item, field) = *encoded.Content[0]
	*child(item, "name") = yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: name}
	items.Content = append(items.Content, item)
	return nil
}

// find is the value of a key in a mapping, or nil.
func find(mapping *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// child is the value of a key in a mapping. If there is none, it is appended.
func child(mapping *yamlv3.Node, key string) *yamlv3.Node {
	if value := find(mapping, key); value != nil {
		return value
	}
	value := &yamlv3.Node{}
	mapping.Content = append(mapping.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: key}, value)
	return value
}
