// Signing in.

import { h, note } from '../lib/dom.js';
import { session, signInURL } from '../lib/session.js';
import { heading } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const wanted = page.query.get('to') || '/ui/';
  const to = wanted.startsWith('/ui/') ? wanted : '/ui/';
  if (session.me !== null) return page.go('/ui/');
  page.title('Sign in');
  page.show(heading('Sign in to kedge', null), page.query.has('deleted') && note('', h('p', {}, 'Your account is deleted. Sign in to bring it back, until it is purged.')), h('section', { class: 'card' },
    h('p', {}, 'Your organizations, workspaces, members and bots. You come back to the page that you opened.'),
    h('p', {}, h('a', { class: 'button primary', id: 'sign-in', href: signInURL(to) }, 'Sign in'))));
}
