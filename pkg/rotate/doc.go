// Package rotate reads files again when they change, so that certificates, keys and tokens can be
// replaced while the hub runs.
//
// Files are compared by their content every ten seconds. File system events would not suffice:
// network file systems and Kubernetes' volumes do not send one for every change. A changed target
// of a symbolic link is seen as well. If the new content cannot be used, that is logged and
// counted, the old content stays in use, and the new one is tried again.
//
//   - kedge_file_reloads_total{flag,result}: changed files that were read, result is ok or error
//   - kedge_file_stale{flag}: 1 while the hub uses an older content than that of the files
package rotate
