package framework

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example for operators starts what the tests start.
func TestShardedExample_hasTheFlagsOfTheTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &ShardedKCP{KCP: &KCP{Dir: dir, TokenFile: "tokens.csv"}, ports: map[string][3]int{}}
	tested := map[string]bool{}
	for _, name := range []string{cacheServer, RootShard, "two", frontProxy} {
		args, err := s.flagsOf(name)
		require.NoError(t, err)
		for _, arg := range args[1:] {
			flag, _, _ := strings.Cut(arg, "=")
			tested[flag] = true
		}
	}
	raw, err := os.ReadFile("../../deploy/examples/sharded-kcp.sh")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, flag := range regexp.MustCompile(`(?m)(--[a-z-]+)=`).FindAllStringSubmatch(string(raw), -1) {
		shown[flag[1]] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(tested)), slices.Sorted(maps.Keys(shown)))
}
