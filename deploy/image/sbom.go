package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// document is an SPDX 2.3 document, as far as it is used here.
type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creationInfo   `json:"creationInfo"`
	Packages          []spdxPackage  `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creationInfo struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	SPDXID           string        `json:"SPDXID"`
	Name             string        `json:"name"`
	VersionInfo      string        `json:"versionInfo,omitempty"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	Checksums        []checksum    `json:"checksums,omitempty"`
	ExternalRefs     []externalRef `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// newSBOM lists the programs and the Go modules that are linked into them.
func newSBOM(o options, created time.Time) ([]byte, error) {
	const root = "SPDXRef-DOCUMENT"
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: root, Name: "kedge-hub " + o.version,
		CreationInfo: creationInfo{Created: created.Format(time.RFC3339), Creators: []string{"Tool: github.com/faroshq/kedge-hub/deploy/image"}},
	}
	sums, modules := sha256.New(), map[string]debug.Module{}
	for _, program := range o.programs {
		raw, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("%s: read its modules: %w", program, err)
		}
		sum := sha256.Sum256(raw)
		sums.Write(sum[:])
		name := filepath.Base(program)
		id := "SPDXRef-Program-" + name
		d.Packages = append(d.Packages, spdxPackage{
			SPDXID: id, Name: name, VersionInfo: o.version, DownloadLocation: "NOASSERTION",
			Checksums: []checksum{{"SHA256", hex.EncodeToString(sum[:])}},
		})
		d.Relationships = append(d.Relationships, relationship{root, "DESCRIBES", id})
		linked := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			linked = append(linked, *m)
		}
		for _, m := range linked {
			modules[moduleID(m)] = m
			d.Relationships = append(d.Relationships, relationship{id, "CONTAINS", moduleID(m)})
		}
	}
	for id, m := range modules {
		d.Packages = append(d.Packages, spdxPackage{
			SPDXID: id, Name: m.Path, VersionInfo: m.Version, DownloadLocation: "NOASSERTION",
			ExternalRefs: []externalRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		})
	}
	slices.SortFunc(d.Packages, func(a, b spdxPackage) int { return cmp.Compare(a.SPDXID, b.SPDXID) })
	d.DocumentNamespace = "https://github.com/faroshq/kedge-hub/sbom/" + hex.EncodeToString(sums.Sum(nil))
	return json.MarshalIndent(d, "", " ")
}

// moduleID is an identifier of letters, digits, dots and dashes.
func moduleID(m debug.Module) string {
	return "SPDXRef-Module-" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, m.Path+"-"+m.Version)
}
