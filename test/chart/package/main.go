// Command package makes the archive of the Helm chart.
package main

import (
	"flag"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

func main() {
	dir := flag.String("chart", "", "folder of the chart")
	version := flag.String("app-version", "", "version of the hub, which is the tag of its image")
	out := flag.String("out", "", "folder that gets the archive")
	flag.Parse()
	if err := run(*dir, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

func run(dir, version, out string) error {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return err
	}
	c.Metadata.AppVersion = version
	if err := c.Validate(); err != nil {
		return err
	}
	archive, err := chartutil.Save(c, out)
	if err != nil {
		return err
	}
	fmt.Println(archive)
	return nil
}
