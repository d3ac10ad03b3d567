package restore

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faroshq/kedge-hub/pkg/durable"
)

// reportFile is the Report, below the data folder.
const reportFile = "restore-report.json"

// Report says what a restored hub did before it served.
type Report struct {
	Plan
	// Done are the Steps that were carried out, and Impossible those that cannot be.
	Done       []Step       `json:"done"`
	Impossible []Impossible `json:"impossible"`
	// GroupsForgotten is the number of people with groups at the identity provider. The hub has forgotten these groups until
	// the people log in again.
	GroupsForgotten int `json:"groupsForgotten"`
	// WithoutAdmin are the Organizations that have no admin: nobody can be added to them until a platform admin acts.
	WithoutAdmin []string `json:"organizationsWithoutAdmin"`
	// Orphans are the logical clusters that no Workspace leads to, with the members of the time of the snapshot of their
	// shard.
	Orphans []Orphan `json:"withoutWorkspace,omitempty"`
	// Purges are those that are due, and that the operator holds back until kedge-hub restore --release.
	Purges []Purge `json:"heldPurges"`
}

// Purge is the removal of something whose grace period is over.
type Purge struct {
	// Kind is organization, workspace or person.
	Kind      string    `json:"kind"`
	Org       string    `json:"org,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Object    string    `json:"object,omitempty"`
	Due       time.Time `json:"due"`
}

// Impossible is a Step that cannot be carried out.
type Impossible struct {
	Step
	Reason string `json:"reason"`
	// GivenUp is true if the Step went on failing: what it ends may be there again.
	GivenUp bool `json:"givenUp,omitempty"`
	// Others is the number of further Steps of this kind in the same Organization, which the backup does not have. Plan.Steps
	// names them.
	Others int `json:"others,omitempty"`
}

// stepKey identifies a Step of a Plan.
type stepKey struct {
	kind                           Kind
	source, org, workspace, object string
}

func keyOf(s Step) stepKey { return stepKey{s.Kind, s.Source, s.Org, s.Workspace, s.Object} }

// GivenUp returns the Steps that went on failing.
func (r Report) GivenUp() (steps []Step) {
	for _, s := range r.Impossible {
		if s.GivenUp {
			steps = append(steps, s.Step)
		}
	}
	return steps
}

// over has the Steps that a run has finished.
func (r Report) over() map[stepKey]bool {
	finished := map[stepKey]bool{}
	for _, s := range r.Done {
		finished[keyOf(s)] = true
	}
	for _, s := range r.Impossible {
		finished[keyOf(s.Step)] = true
	}
	return finished
}

// left returns the Steps of the Plan that a run before has not finished.
func (r Report) left() (steps []Step) {
	finished, gone := r.over(), r.goneKinds()
	for _, s := range r.Steps {
		if !finished[keyOf(s)] && !gone[goneKey{s.Kind, s.Org}] {
			steps = append(steps, s)
		}
	}
	return steps
}

// ReportFile is the name of the Report in a data folder.
func ReportFile(dataDir string) string { return filepath.Join(dataDir, reportFile) }

// ReadReport returns the Report in a data folder; an empty one if there is none.
func ReadReport(dataDir string) (r Report, err error) {
	raw, err := os.ReadFile(ReportFile(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, nil
	}
	if err != nil {
		return Report{}, err
	}
	return r, json.Unmarshal(raw, &r)
}

// WriteReport writes the Report into a data folder.
func WriteReport(dataDir string, r Report) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(ReportFile(dataDir), append(raw, '\n'), 0o600)
}
