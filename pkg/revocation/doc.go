// Package revocation is the one place that knows that a right has ended and who must
// learn of it. It runs on every replica.
//
// It subscribes to the views. When a change may end a right of a User in a logical
// cluster, it tells its subscribers in the same call, before the views wake any caller of
// Await: the proxy closes streams. The bindings in kcp are the access controller's.
//
// The end of a Session is such a change, too: the streams of its User are looked at again,
// and each asks whether its own credential is still good.
//
// # Has kcp followed
//
// kcp authorizes a request from informers of each shard. After a binding is gone from etcd
// a shard still goes by it until its informer has the event. Where a User keeps a lesser
// role, the gate lets them in meanwhile, and kcp lets them open with the old right what the
// gate cannot tell from the new one. Such a stream ends when kcp has followed: Revocation
// asks kcp by SubjectAccessReview until the answer is no, at most until a deadline, and
// tells its subscribers once more. A subscriber closes then what the User has opened until
// that moment. A User whom the gate refuses needs no such cut, and kcp is not asked.
//
// The condition is right for these reasons (kcp 0.32):
//
//   - kcp answers a SubjectAccessReview in a logical cluster on the shard of that cluster,
//     like a request in it. The review calls the authorizer that requests pass: the same
//     object, with the same informers, which have the shard's own bindings and the copies
//     in the cache server (pkg/server/options/authorization.go of kcp, and
//     registry/authorization/subjectaccessreview/rest.go of Kubernetes).
//   - The informers of an authorizer do not go back in time. So after a review says no, no
//     later request passes by the ended right.
//   - The proxy knows a stream before it forwards the request. So every stream that kcp let
//     in before the review is known when subscribers are told.
//   - A review may say no for another reason, such as required groups. So the User must
//     still have access to the logical cluster by a second review, the positive control.
//     Without it the answer counts as unknown.
//
// The review asks for an action that the lost ClusterRole permits and the roles that are
// left to the User do not: one of a built-in API, because kcp may refuse one of a bound API
// by the provider's maximal permission policy. Without such an action it asks for one of
// each API group. Where the roles that are left permit all of it, nothing ended.
// Where kcp answers by several processes, a review speaks for one of them; a kcp shard runs
// as one process. At the deadline the last cut is made whatever kcp says, with a warning
// and a metric.
package revocation
