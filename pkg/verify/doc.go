// Package verify compares what kcp has with what the hub would make of it, for kedge-hub verify.
//
// What is wanted comes from the functions that the controllers use: package tenancy, the comparisons of the
// reconcilers, and the views. Nothing of it is said a second time here, so a difference is always one that a
// controller, or the gate, would see. The views are filled anew from kcp for each look, so that a fault of the
// views of a running hub shows.
//
// kcp has no snapshot over all workspaces, and a hub that runs changes what is compared. So a difference
// counts if it is there a while later, unchanged: what a controller is about to do is none. What is new and
// not Ready yet is left out for a minute.
//
// Each difference names the controller that heals it, or says what a person has to do. A repair only
// enqueues keys: no write of a controller is repeated here.
package verify
