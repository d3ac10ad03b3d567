// Package metrics creates the Prometheus registry of the hub and serves it. Packages
// register their metrics with it through their constructors. Nothing is registered
// globally, so that the metrics of the embedded kcp and of several hubs in one test process
// stay apart.
//
// # Metrics
//
// Beside the metrics of the Go runtime and the process, the hub has these. Durations are in
// seconds.
//
//   - kedge_http_requests_total{route,method,code}: requests answered. route is the pattern of
//     the route, never a path.
//   - kedge_http_request_duration_seconds{route,method}: time from a request to the end of its
//     answer, watches and upgraded connections included.
//   - kedge_http_requests_in_flight: requests in progress.
//   - kedge_connections: open connections of clients, upgraded ones included.
//   - kedge_limited_total{limit}: connections, requests and streams refused by a limit:
//     connections, connections_per_peer, failed_authentications_per_peer, requests_per_person,
//     writes_per_person, requests_in_flight_per_person, writes_in_flight_per_person,
//     requests_in_flight, requests_in_flight_per_workspace, changes_in_flight_per_object,
//     role_writes_in_flight, watches_beginning_per_workspace, turns_per_org, bytes_in_flight_per_org,
//     bytes_in_flight_per_person, bytes_in_flight, additions_per_person, searches_per_person, invitations_per_peer, audit_reads_per_person,
//     audit_reads_in_flight_per_person, streams, streams_per_person, streams_per_org, sign_ups,
//     sign_ups_per_peer, logins, logins_per_peer, logins_per_session, logins_per_person,
//     device_logins, device_logins_per_peer.
//   - kedge_proxy_streams: open watches and upgraded connections through the proxy.
//   - kedge_proxy_in_flight_bytes: bytes that the requests of more than 3 MiB in Workspaces that are
//     in progress count for, up to --max-bytes-in-flight.
//   - kedge_proxy_in_flight_requests: requests in Workspaces that kcp has, except long-running ones, up
//     to --max-requests-in-flight.
//   - kedge_proxy_revocation_seconds: time from the moment that the hub learned of a revoked
//     right to the end of a stream that depended on it.
//   - kedge_revocation_followed_seconds: time from the moment that the hub learned of a revoked
//     right to the moment that the authorizer of kcp refused it, if a lesser right was left.
//   - kedge_revocation_late_total: revoked rights that kcp still granted, or could not be asked
//     about, at the deadline of 10 seconds.
//   - kedge_views_objects{view}: objects in the caches.
//   - kedge_views_bytes{view}: estimate of the memory of these objects in bytes, from a sample.
//   - kedge_views_tenant_bytes{view}: estimate of the memory of the objects of one logical cluster of a
//     tenant in bytes: the most.
//   - kedge_views_lag_seconds{view}: time from a write in kcp to the moment that the cache has it.
//     kcp stores whole seconds, so that the time is up to a second too long. It supposes that the
//     clocks of kcp and of the hub agree.
//   - kedge_views_wait_seconds: time that a request waited for the caches to show its write.
//   - kedge_memberships_expired_total: Memberships that ended by time, as this replica saw it.
//   - kedge_kcp_requests_total{method,code}: requests of the hub itself to kcp, without proxied
//     ones. code is the HTTP status, or error if there was no answer.
//   - kedge_kcp_request_duration_seconds{method}: time from a request of the hub itself to kcp to the
//     headers of the answer.
//   - kedge_controller_queue_depth{controller}: keys that wait for a worker.
//   - kedge_controller_reconcile_duration_seconds{controller}: time of one reconciliation.
//   - kedge_controller_retries_total{controller}: reconciliations repeated after an error or a
//     conflict.
//   - kedge_controller_errors_total{controller}: reconciliations that failed.
//   - kedge_trace_spans_exported_total: spans that the collector of --otlp-endpoint has taken. It is absent
//     without one, as is the next.
//   - kedge_trace_spans_dropped_total: spans that were dropped, because too many waited or the collector of
//     --otlp-endpoint did not take them.
//   - kedge_oidc_issuer_up: 1 if the last request for the discovery document and the keys of the
//     OIDC issuer succeeded, else 0.
//   - kedge_oidc_key_fetches_total{result}: requests for the keys of the OIDC issuer; result is
//     ok or error.
//   - kedge_ci_issuer_up{issuer}: 1 if the last request for the discovery document and the keys of an
//     issuer of --ci-issuer succeeded, else 0.
//   - kedge_ci_key_fetches_total{issuer,result}: requests for the keys of the issuers of --ci-issuer;
//     result is ok or error.
//   - kedge_ci_exchanges_total{result}: genuine ID tokens of jobs that were presented for a token of a
//     bot; result is ok, refused or error.
//   - kedge_serviceaccount_key_fetches_total{result}: requests for the keys of kcp's
//     ServiceAccount tokens; result is ok or error.
//   - kedge_logins_total{client,result}: logins that ended; client is cli, portal or device, and
//     result is ok, refused (by the identity provider, the hub or the person) or error.
//   - kedge_sessions{client}: sessions that have not ended; client is cli or portal.
//   - kedge_session_logins_total{client}: sessions created; client is cli or portal.
//   - kedge_session_renewals_total{result}: requests to the identity provider for a newer ID
//     token of a session; result is ok, refused or error.
//   - kedge_file_reloads_total{flag,result}: files that changed and were read again; flag is the
//     flag that names them without its dashes, and result is ok or error.
//   - kedge_file_stale{flag}: 1 while the hub uses an older content than that of the files,
//     because the new one cannot be used, else 0.
//   - kedge_leader: 1 while this replica is the leader and its controllers may write, else 0.
//   - kedge_ready: 1 if /readyz succeeds, else 0.
//   - kedge_check_ok{check}: 1 if a check of /readyz?verbose succeeds, else 0.
//   - kedge_certificate_expiry_timestamp_seconds{certificate}: time at which a certificate expires, in
//     seconds since 1970: serving and ca of the hub, kcp for the one that kcp serves with (with
//     several shards, the first to expire), and kcp-client for the client certificate of the hub at
//     kcp, if it has one.
//   - kedge_users{phase,registration}: people. phase is Ready, Progressing, SoftDeleted or
//     Terminating, here and below; registration is Approved, Pending or Rejected.
//   - kedge_organizations{phase}: organizations, personal ones included.
//   - kedge_workspaces{phase}: child workspaces.
//   - kedge_bots{phase}: bots.
//   - kedge_spares{kind,state}: workspaces that nobody owns and that are kept for the next create, by
//     what they are for (organization or workspace) and state: making, ready, reserved or removing.
//     They do not count as organizations and workspaces.
//   - kedge_spares_taken_total{kind}: spares that creates and sign-ups took, as each replica sees them.
//   - kedge_spares_discarded_total{reason}: spares that the leader threw away: outdated (made by
//     another version or with another template), incomplete, abandoned (reserved, and then not
//     claimed) or surplus.
//   - kedge_bot_tokens: tokens of bots that have neither expired nor been revoked.
//   - kedge_bot_tokens_ending: tokens of bots that end within a week and were not rotated. Those of jobs of CI
//     are not counted.
//   - kedge_bot_tokens_issued_total: tokens of bots that were issued.
//   - kedge_bot_tokens_revoked_total: tokens of bots that were revoked by a request.
//   - kedge_groups_heard_total{result}: credentials with newer groups of a person, by what followed: gained, lost,
//     same or error.
//   - kedge_access_requests_total{event}: requests for rights that were made, approved, denied, withdrawn or ended early.
//   - kedge_invitations_total{event}: invitations that were made, accepted, declined or revoked.
//   - kedge_etcd_size_bytes: size of the database file of the embedded etcd in bytes, which counts
//     against the quota. It is absent with an external kcp, as are the next two.
//   - kedge_etcd_used_bytes: bytes of that file that are in use; a defragmentation frees the others.
//   - kedge_etcd_quota_bytes: size in bytes at which the embedded etcd refuses writes.
//   - kedge_audit_lost_total: audit events that could not be written.
//   - kedge_audit_counted_writes_total: proxied writes above --audit-org-writes, and requests of one person or
//     bot that changed nothing above a tenth of it, of which the audit log has the number only.
//   - kedge_audit_refused_changes_total: changes above the share that their person, bot or organization has of the
//     audit log: refused, or ends that are recorded only if they end something.
//   - kedge_records_lag_seconds: age in seconds of the oldest audit event of this replica that --database
//     does not have; 0 if it has all. It is absent without a database, as are the next three.
//   - kedge_records_stored_total: audit events of this replica that the database has stored.
//   - kedge_records_lost_total: audit events that were removed from the files of this replica before the
//     database had them.
//   - kedge_records_removed_total: audit events that were removed from the database because of their age.
//   - kedge_usage_lag_seconds: age in seconds of the last moment up to which the database has all usage that
//     this replica counted. It is absent without a database, as is the next.
//   - kedge_usage_lost_total: rows of usage that this replica gave up because the database was down for too
//     long.
//   - kedge_billing_changes_lag_seconds: age in seconds of the oldest change of a billed workspace that
//     --database does not have; 0 if it has all, and on a replica that does not lead.
//   - kedge_billing_lag_seconds: time in seconds since the end of the oldest interval that --billing-table
//     does not have; 0 if it has all, and on a replica that does not lead. It is absent without a table, as
//     is the next.
//   - kedge_billing_pushed_total: rows that this replica has appended to --billing-table.
//   - kedge_etcd_maintenance_total{action,result}: work of the hub on that database. action is compact,
//     defragment or disarm; result is ok or error.
//   - kedge_backup_last_timestamp_seconds: time of the last backup that was stored, in seconds since 1970. It
//     is absent until the first one, as is the next.
//   - kedge_backup_last_bytes: size of that backup in bytes, before compression.
//   - kedge_restore_mode: 1 while the hub ends what ended after the backup that it was restored from, else 0.
//   - kedge_purges_held: 1 from a restore until kedge-hub restore --release, while nothing is purged, else 0.
//   - kedge_storage_used_ratio{store}: share of a store of the embedded kcp that is used. store is
//     etcd, whose limit is --etcd-quota, or disk, of which the last 10 GiB count. It is absent with
//     an external kcp, as is the next.
//   - kedge_storage_floor{store}: what the store refuses: 0 nothing, 1 growth, 2 all but endings, 3
//     everything.
//   - kedge_storage_tenant_refused_total{limit}: requests refused because a tenant has reached a limit
//     of storage. limit is workspace_objects, workspace_bytes, workspace_definitions,
//     workspace_bindings, workspace_roles, org_bytes, or workspace_unread for one whose definition hides
//     what it stores.
//   - kedge_storage_measure_seconds: time of a measurement of what a Workspace stores.
//   - kedge_storage_incomplete_workspaces: Workspaces whose last measurement could not read everything
//     that they store. What could not be read keeps its last count.
//   - kedge_storage_refused_total{write}: writes refused because a store is full. write is growth,
//     change or ending.
package metrics
