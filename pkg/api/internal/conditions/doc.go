// Package conditions has conditions as they are answered. A metav1.Condition would
// do, but encoding/json asks its time for JSON, which is checked and copied once
// more: of a list of Orgs that was a fifth of the whole request.
package conditions
