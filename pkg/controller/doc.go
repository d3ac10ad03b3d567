// Package controller implements the loop of all reconcilers: a queue of cluster-aware keys,
// workers, retries with back-off, ordered steps, the operation annotation, the common status,
// and the finalizer of cascading deletion.
//
// A change of a view enqueues a key. A worker reads the object of the key from the cache. Ordered
// steps ask package tenancy for the desired state and establish it, and one patch follows. Then the
// key is done, backs off, or is requeued after a time.
//
// Kinds with a common status use Reconcile, which combines a Kind and its steps to a Func. Each
// step is reported as one condition. A pass sends at most one patch, with UID and resource
// version as preconditions, and none if nothing changed. Status never changes in the same pass as
// metadata or spec. Derived objects without a status are reconciled by a Func of their own. New
// returns a Controller, which calls a Func for the keys of a queue.
//
// Owners of keys take turns in the queue, so that no tenant delays the keys of another one, and keys
// of which rights end go first. The owner of a key is its logical cluster, or what EnqueueFor names.
//
// Controllers that write run on the leader. A step that must wait returns a Result with a message
// and a RequeueAfter, so that people see what the object waits for.
package controller
