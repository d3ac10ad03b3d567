// Package tenancy holds the rules of the tenancy model, all of them pure: paths
// and names, who may do what, and the objects that follow from the truth. It
// talks to nobody, so that a rule stands in one place and a table tests it.
package tenancy
