// Package rotate reads files again when they change, so that certificates, keys and tokens can be
// replaced while the hub runs.
//
// Files are compared by their content every ten seconds. That needs no events of the file system,
// which network file systems and the mounts of Kubernetes do not send for every change, and it
// sees the change of a symbolic link. A new content that cannot be used is logged and counted, the
// old one stays in use, and it is tried again until it is used or the files change.
//
//   - kedge_file_reloads_total{flag,result}: changed files that were read, result is ok or error
//   - kedge_file_stale{flag}: 1 while the hub uses an older content than that of the files
package rotate
