// Where a sign-in ends that another tab waits for.

import { h } from '../lib/dom.js';
import { announceSignIn } from '../lib/session.js';
import { heading } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  page.title('Signed in');
  announceSignIn();
  page.show(heading('You are signed in', null), h('p', {}, 'Close this tab and go on in the other one.'));
  if (opener) close();
}
