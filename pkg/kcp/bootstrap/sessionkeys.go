package bootstrap

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// SessionKeysName is the name of the Secret with the session keys in the root workspace.
const SessionKeysName = "kedge-hub-session-keys"

// sessionKeysField is the field of the Secret. It has the format of --session-key-file, so
// that the keys can be rotated by adding a line.
const sessionKeysField = "keys"

// sessionKeySize is the size of a key in bytes.
const sessionKeySize = 32

// SessionKeys returns the session keys in the logical cluster of the root workspace, in the
// format of --session-key-file. If there are none, it creates one from random. kcp accepts
// the Secret once, so that replicas that start at the same time get the same key. It retries
// after errors until ctx ends.
func SessionKeys(ctx context.Context, clients *kcp.Clients, cluster string, random io.Reader) (keys []byte, err error) {
	err = retry(ctx, "read the session keys", func() error {
		keys, err = sessionKeys(ctx, clients, cluster, random)
		return err
	})
	return keys, err
}

func sessionKeys(ctx context.Context, clients *kcp.Clients, cluster string, random io.Reader) ([]byte, error) {
	client := clients.Secrets(cluster, metav1.NamespaceDefault)
	held, err := client.Get(ctx, SessionKeysName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return dataOf(held, err)
	}
	key := make([]byte, sessionKeySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	made := &corev1.Secret{Data: map[string][]byte{sessionKeysField: []byte(base64.StdEncoding.EncodeToString(key) + "\n")}}
	made.Name, made.Namespace = SessionKeysName, metav1.NamespaceDefault
	held, err = client.Create(ctx, made, metav1.CreateOptions{FieldManager: kcp.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		held, err = client.Get(ctx, SessionKeysName, metav1.GetOptions{})
	case apierrors.IsNotFound(err):
		// kcp creates the namespace shortly after the workspace.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}
		if _, err = clients.Namespaces(cluster).Create(ctx, namespace, metav1.CreateOptions{FieldManager: kcp.FieldManager}); err == nil || apierrors.IsAlreadyExists(err) {
			held, err = client.Create(ctx, made, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		}
	}
	return dataOf(held, err)
}

func dataOf(s *corev1.Secret, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", SessionKeysName, err)
	}
	return s.Data[sessionKeysField], nil
}
