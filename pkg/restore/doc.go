// Package restore takes from a hub that was restored from a backup what ended after the backup was made.
//
// # Decisions
//
//   - What ended is read from the chains of rights of the audit log, of every replica. An event has all that it takes to
//     end the same right again.
//   - A Step only takes away: what is restored keeps at most what the event left. A role becomes the lower of the two,
//     further roles those that are in both, an end the earlier one. So neither the order of the events of several
//     replicas matters nor their clocks, and a step that is done twice changes nothing the second time.
//   - Everybody waits for all Steps, and tenants decide how many events there are. So few Steps take exactly what one for
//     each event would take, in their order: a plan grows with what there is, and not with how often somebody changes it.
//     What several Steps need of a place is read, activated, and found missing once in a pass over them.
//   - The controllers that carry out what requests decide run meanwhile, because a Step has them do its work. What the
//     backup has accepted they make, grants too: a Step waits for it, and ends it then. What they do not make, because its
//     Organization or its creator is soft-deleted, a Step takes back.
//   - The controller of people is one of them, for the Organizations that people have claimed. It removes nobody meanwhile: an
//     heir to their Organizations may be about to lose their place.
//   - The hub gives an Organization without Memberships to its creator. A Step that can leave one so takes the creator's
//     name from it: nobody gets back in this way what they lost. A platform admin sees such Organizations in the Report.
//   - The end of a Session signs its person out everywhere, up to the time of the end. A Session knows its ID tokens by
//     their hashes, and the backup has not those that it got later, nor Sessions that are newer: only the time at which a
//     token was issued tells it. The price is a login, and no token outlives its Session.
//   - In an Organization that the backup has as soft-deleted, Steps write what its controller would: it does nothing until
//     the undeletion, after which everybody would be back for a moment.
//   - Nobody waits for ever: a Step that goes on failing while kcp answers is given up, and named in the Report and the log.
//     So is a person whose groups cannot be forgotten.
//   - What was given after the backup is lost and stays lost, also where it was given after something was taken: nobody
//     gets a right from a log. Plan.Lost lists it, for people to give it again.
//   - An intent without an outcome counts as carried out, and so does one that failed for no fault of the request. Intents
//     from before the backup count if they are young enough for their write to be on its way still.
//   - One table says of every action what it is. An action that it does not have, of a newer hub or of another program,
//     is history that this hub cannot read.
//   - Files and the records database are one source: both have the lines of the chains. A chain counts from the backup's
//     head on; what is before, and chains that had ended when the backup was made, are not asked for.
//   - An external kcp is restored by its own means, and has the ends of the chains that hubs recorded before its backup. So
//     the time of the backup says which events it has, and the ends only which chains there have to be. What kcp has from
//     after that time shows a hub that has worked since: then nothing is certain.
//   - The shards of an external kcp have snapshots of different times. What was made in between is in a later one, and
//     the shard with its Workspace does not know it: nobody could end rights there, and kcp would let people in. So every
//     logical cluster without a Workspace is deactivated, and Report.Orphans has it.
//   - What cannot be known ends a restore: a chain that is missing, changed, or forked, that has a gap, or does not
//     reach from the backup on, and events that could not be written. An operator who accepts that says so in the
//     Order, and the report has it.
package restore
