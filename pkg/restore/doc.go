// Package restore takes from a hub that was restored from a backup what ended after the backup was made.
//
// # Decisions
//
//   - What ended is read from the chains of rights of the audit log, of every replica. An event has all that it takes to
//     end the same right again.
//   - A Step only takes away: what is restored keeps at most what the event left. A role becomes the lower of the two,
//     further roles those that are in both, an end the earlier one. So neither the order of the events of several
//     replicas matters nor their clocks, and a step that is done twice changes nothing the second time.
//   - The controllers that carry out what requests decide run meanwhile, because a Step has them do its work. What the
//     backup has accepted they make, grants too: a Step waits for it, and ends it then.
//   - The hub gives an Organization without Memberships to its creator. A Step that can leave one so takes the creator's
//     name from it: nobody gets back in this way what they lost. A platform admin sees such Organizations in the Report.
//   - What was given after the backup is lost and stays lost, also where it was given after something was taken: nobody
//     gets a right from a log. Plan.Lost lists it, for people to give it again.
//   - An intent without an outcome counts as carried out, and so does one that failed for no fault of the request. Intents
//     from before the backup count if they are young enough for their write to be on its way still.
//   - One table says of every action what it is. An action that it does not have, of a newer hub or of another program,
//     is history that this hub cannot read.
//   - What cannot be known ends a restore: a chain that is missing, changed, or forked, that has a gap, or does not
//     reach from the backup on, and events that could not be written. An operator who accepts that says so in the
//     Order, and the report has it.
package restore
