package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestAnEchoIsTheControllersOwnWriteAndNobodyElses(t *testing.T) {
	t.Parallel()
	e := controller.NewEcho()
	key := controller.Key{Cluster: "c", Name: "n"}
	require.False(t, e.Is(key, "1"), "nothing was written")
	e.Wrote(key, "2")
	require.True(t, e.Is(key, "2"))
	require.False(t, e.Is(key, "3"), "somebody else wrote after it")
	require.False(t, e.Is(controller.Key{Cluster: "d", Name: "n"}, "2"), "another object")
	require.False(t, e.Is(key, ""))
	e.Forget(key)
	require.False(t, e.Is(key, "2"))
}

// A pass that runs before memory has the controller's own write compares with what
// was there before it, and would leave for good what that write said wrongly.
func TestAWriteThatAPassDidNotSeeYetIsNoEcho(t *testing.T) {
	t.Parallel()
	key := controller.Key{Cluster: "c", Name: "n"}
	at := func(version string) *v1alpha1.Membership {
		m := &v1alpha1.Membership{}
		m.ResourceVersion = version
		return m
	}
	for name, c := range map[string]struct {
		// reads are what memory holds; heard says that the event comes between the first
		// read and what the pass makes of it.
		reads  []string
		heard  bool
		passes string
		echo   bool
	}{
		"memory has it":                     {reads: []string{"2"}, passes: "2", echo: true},
		"memory has what was before it":     {reads: []string{"1"}, passes: "1"},
		"memory gets it in the very moment": {reads: []string{"1", "2"}, heard: true, passes: "2"},
		"somebody else wrote after it":      {reads: []string{"3"}, passes: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := controller.NewEcho()
			e.Wrote(key, "2")
			read := 0
			o, ok := controller.Seen(e, func(controller.Key) (*v1alpha1.Membership, bool) {
				version := c.reads[read]
				if read++; c.heard {
					require.Equal(t, read == 1, e.Is(key, "2"), "it is spared once, by then it is late")
				}
				return at(version), true
			})(key)
			require.True(t, ok)
			require.Equal(t, c.passes, o.ResourceVersion)
			require.Equal(t, c.echo, e.Is(key, "2"))
		})
	}
	_, ok := controller.Seen(controller.NewEcho(), func(controller.Key) (*v1alpha1.Membership, bool) { return nil, false })(key)
	require.False(t, ok)
}
