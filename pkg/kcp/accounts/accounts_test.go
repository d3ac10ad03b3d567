package accounts_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/kcp/accounts"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestKeys_areThoseOfAllShardsThatAnswer(t *testing.T) {
	t.Parallel()
	server := kcpfake.New(t)
	var asked atomic.Int64
	answered := make(chan struct{})
	server.ServeWith(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		cluster := strings.Split(r.URL.Path, "/")[2]
		switch cluster {
		case "deactivated":
			http.Error(w, "", http.StatusForbidden)
			return
		case "three":
			close(answered)
		case "down":
			// It takes all the time that there is, if the others wait for it.
			select {
			case <-answered:
			case <-r.Context().Done():
			}
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprintf(w, `{"keys":[{"kid":%q,"kty":"EC"}]}`, cluster)
	}))
	a := accounts.New(server.Clients(), "providers", "kedge", clock.RealClock{})
	for _, c := range []struct {
		others [][]string
		want   string
		fails  bool
	}{
		{nil, `{"keys":[{"kid":"providers","kty":"EC"}]}`, false},
		{[][]string{{"other", "providers"}, {"two"}}, `{"keys":[{"kid":"providers","kty":"EC"},{"kid":"two","kty":"EC"}]}`, false},
		{[][]string{{"deactivated", "two", "four"}}, `{"keys":[{"kid":"providers","kty":"EC"},{"kid":"two","kty":"EC"}]}`, false},
		{[][]string{{"deactivated"}}, `{"keys":[{"kid":"providers","kty":"EC"}]}`, true},
		{[][]string{{"down"}, {"three"}}, `{"keys":[{"kid":"providers","kty":"EC"},{"kid":"three","kty":"EC"}]}`, true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		raw, err := a.Keys(ctx, c.others...)
		cancel()
		require.JSONEq(t, c.want, string(raw))
		require.Equal(t, c.fails, err != nil, "%v", err)
	}
	require.EqualValues(t, 11, asked.Load())
}
