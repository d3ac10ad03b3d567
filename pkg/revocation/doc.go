// Package revocation detects that a right has ended and notifies the proxy, which closes
// streams. It runs on every replica. The access controller removes the bindings in
// kcp.
//
// It subscribes to the views. When a change may end a right of a User in a logical
// cluster, it notifies the proxy in the same call, before the views wake any caller
// of Await. The end of a Session is such a change, too: the proxy checks the credential of
// each stream of that User again.
//
// # When kcp refuses the right, too
//
// Each kcp shard authorizes requests from informers. After a binding is deleted from etcd,
// a shard still honours it until its informer has received the event. If the User keeps a
// lesser role, the gate of the proxy admits requests meanwhile, and kcp authorizes them with
// the old role. A stream that is opened in this time must end as well: Revocation repeats a
// SubjectAccessReview until kcp answers no, at most until a deadline, and then notifies the
// proxy once more. It closes the streams that the User opened before that moment. The
// first review follows the removal of the binding, or comes shortly after the change of the
// Membership if the views show no removal. If the gate refuses the User altogether, no such
// stream can exist and kcp is not asked.
//
// A Bot needs no such review here: after its role was lowered, the gate refuses it until the
// controller of Bots has seen that kcp followed.
//
// The answer of the review is sufficient for these reasons (kcp 0.32):
//
//   - kcp answers a SubjectAccessReview in a logical cluster on the shard of that cluster,
//     like a request in it. The review calls the authorizer that requests pass: the same
//     object, with the same informers, which have the shard's own bindings and the copies
//     in the cache server (pkg/server/options/authorization.go of kcp, and
//     registry/authorization/subjectaccessreview/rest.go of Kubernetes).
//   - The informers of an authorizer do not go back in time. So after a review says no, no
//     later request is authorized with the old right.
//   - The proxy registers a stream before it forwards the request. So it knows every stream
//     that kcp admitted before the review.
//   - A review may say no for another reason, such as required groups. So the User must
//     still have access to the logical cluster by a second review, the positive control.
//     Without it the answer counts as unknown.
//
// The review asks for an action that the lost ClusterRole permits and the User's remaining
// roles do not. It prefers an action on a built-in API, because kcp may refuse one on a
// bound API by the provider's maximal permission policy. Without such an action it asks for
// one of each API group. If the remaining roles permit all of them, no right ended.
// A review speaks for the one process that answers it; a kcp shard runs as one process. At
// the deadline the streams are closed whatever kcp answers, with a warning and a metric.
package revocation
