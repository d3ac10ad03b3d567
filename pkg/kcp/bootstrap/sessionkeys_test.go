package bootstrap

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestSessionKeys_areTheSameForReplicasThatStartAtOnce(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		clients := s.Clients()
		all.Go(func() {
			made, err := SessionKeys(t.Context(), clients, "root-id", rand.Reader)
			if err != nil {
				t.Error(err)
			}
			keys[i] = string(made)
		})
	}
	all.Wait()
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0]))
	require.NoError(t, err)
	require.Len(t, raw, sessionKeySize)
	again, err := SessionKeys(t.Context(), s.Clients(), "root-id", nil)
	require.NoError(t, err)
	require.Equal(t, keys[0], string(again))
}
