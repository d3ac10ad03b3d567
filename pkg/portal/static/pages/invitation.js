// An invitation, as the invited person sees it: before a login, and after it.

import { ApiError, call } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { capital, moment } from '../lib/format.js';
import { accept, cameBack, decline, presenting, signInWith } from '../lib/invitations.js';
import { load, loadMemberships, session } from '../lib/session.js';
import { action, button, confirmDialog, errorNote, heading } from '../lib/ui.js';

/** What became of an invitation that is not open. */
const ended = {
  Accepted: 'This invitation was accepted already. It is for one person.',
  Declined: 'This invitation was declined.',
  Revoked: 'This invitation was taken back.',
  Expired: 'This invitation has expired.',
  Void: 'This invitation does not count any more: the place is being deleted, or the person who sent it may not invite anybody now.',
};

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const id = page.params.invitation;
  const link = { id, secret: location.hash.slice(1) };
  const { signal } = page;
  if (session.me === null) await load().catch((e) => { if (!(e instanceof ApiError) || (e.status !== 401 && e.status !== 403)) throw e; });
  if (session.me !== null) page.frame();
  page.title('Invitation');
  let offer;
  try {
    offer = (await call('GET', `/api/invitations/${id}`, { headers: presenting(link.secret), signal })).body;
  } catch (problem) {
    if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    cameBack(id);
    return page.show(heading('There is no such invitation', null),
      h('p', {}, 'The link is not complete, or it is for another person than you. Ask for a new one.'),
      session.me && h('p', {}, 'You are signed in as ', h('strong', {}, named(session.me.displayName, session.me.name)), '.'));
  }
  const problem = h('div', { 'aria-live': 'polite' });
  const enter = async () => {
    const place = await accept(link, signal);
    await loadMemberships().catch(() => {});
    page.go(place);
  };
  const back = cameBack(id) && session.me !== null && !link.secret && offer.state === 'Open';
  if (back) {
    page.show(heading('Invitation', null), h('p', { class: 'loading', role: 'status' }, 'Accepting…'));
    try {
      return await enter();
    } catch (e) {
      signal.throwIfAborted();
      problem.replaceChildren(errorNote(e));
    }
  }
  page.show(
    heading('You are invited', null),
    problem,
    h('section', { class: 'card' },
      h('p', {}, h('strong', {}, named(offer.invitedBy)), ' invites you to ', offer.workspaceDisplayName && ['the workspace ', h('strong', {}, named(offer.workspaceDisplayName)), ' of '],
        'the organization ', h('strong', {}, named(offer.orgDisplayName)), '.'),
      offer.note && h('blockquote', { dir: 'auto' }, offer.note),
      h('dl', {}, h('dt', {}, 'Your role'), h('dd', {}, capital(offer.role)),
        offer.membershipExpiresAt && [h('dt', {}, 'It ends'), h('dd', {}, moment(offer.membershipExpiresAt))], h('dt', {}, 'Open until'), h('dd', {}, moment(offer.expiresAt))),
      offer.state === 'Open' ? answers(page, link, enter, problem) : note('warn', h('p', {}, ended[/** @type {keyof ended} */ (offer.state)]), h('p', {}, 'Ask for a new one.'))),
  );
}

/**
 * @param {import('../app.js').Page} page
 * @param {import('../lib/invitations.js').Link} link
 * @param {() => Promise<void>} enter
 * @param {HTMLElement} problem
 */
function answers(page, link, enter, problem) {
  if (session.me === null) {
    return h('div', { class: 'actions' }, action('Sign in and accept', 'To the sign-in…', () => signInWith(link), { kind: 'primary', problem }));
  }
  return [
    h('p', {}, 'You are signed in as ', h('strong', {}, named(session.me.displayName, session.me.name)), '.'),
    h('div', { class: 'actions' },
      link.secret && action('Sign in as somebody else', 'To the sign-in…', () => signInWith(link), { problem }),
      button('Decline', () => confirmDialog({
        title: 'Decline the invitation', text: 'Nobody can accept it then.', action: 'Decline', signal: page.signal,
        submit: async () => {
          await decline(link, page.signal);
          page.go('/ui/');
        },
      })),
      action('Accept', 'Accepting…', enter, { kind: 'primary', problem })),
  ];
}
