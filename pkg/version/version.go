package version

import (
	"runtime/debug"
	"strings"
)

// version is set by the linker with -X github.com/faroshq/kedge-hub/pkg/version.version=v1.2.3
var version = "v0.0.0-dev"

// String returns the version, with the commit if the build recorded it.
func String() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && !strings.Contains(version, "-g") {
				return version + "+" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return version
}

// KCP returns the version of the linked kcp. It is empty in a program without one.
func KCP() string { return linked("github.com/kcp-dev/kcp") }

// Etcd returns the version of the linked etcd. It is empty in a program without one.
func Etcd() string { return linked("go.etcd.io/etcd/server/v3") }

func linked(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
