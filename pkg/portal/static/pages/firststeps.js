// The first steps: from nothing to kubectl in a Workspace, and to a colleague in it.

import { h, named } from '../lib/dom.js';
import { badge, size } from '../lib/format.js';
import { caLink, filesOfHub, installCommands, loginCommand, platforms } from '../lib/getin.js';
import { session } from '../lib/session.js';
import { allSteps, tick } from '../lib/steps.js';
import { button, command, heading } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const [steps, files] = await Promise.all([allSteps(page.signal), filesOfHub()]);
  page.title('First steps');
  const content = { kedge: getting(files), workspace: making(), kubectl: using(), colleague: inviting() };
  page.show(
    heading('First steps', `${steps.filter((s) => s.done).length} of ${steps.length} done`, button('Do not show them again', () => {
      tick('all');
      page.go('/ui/');
    })),
    steps.map((step, i) => h('section', { class: 'card' },
      h('div', { class: 'row' }, h('h2', {}, `${i + 1}. ${step.title}`), step.done ? badge('ok', 'Done') : said(page, step.name)),
      content[step.name])),
  );
}

/** A button that says that a step is done. @param {import('../app.js').Page} page @param {import('../lib/steps.js').Step['name']} name */
function said(page, name) {
  return button('Done', () => {
    tick(name);
    page.reload();
  }, 'plain');
}

/** @param {import('../lib/getin.js').Files} files */
function getting(files) {
  const offered = platforms(files);
  const commands = h('div');
  const show = (/** @type {string} */ chosen) => {
    const [os, arch] = chosen.split('-');
    commands.replaceChildren(...installCommands(files, os, arch).map((line) => command(line)));
  };
  const choice = h('select', { class: 'inline', 'aria-label': 'Your computer' }, offered.map((p) => h('option', { value: `${p.os}-${p.arch}` }, p.title)));
  choice.addEventListener('change', () => show(choice.value));
  if (offered.length > 0) show(`${offered[0].os}-${offered[0].arch}`);
  return [
    files.ca && h('p', {}, 'This hub has a certificate that your computer does not know. Save ', caLink(), ', the CA that signed it, and run the commands in its folder.'),
    offered.length > 0 && [
      h('p', {}, 'kedge signs you in on the command line, and kubectl uses it. Your computer: ', choice), commands,
      h('details', {}, h('summary', {}, 'All programs, with checksums'), h('ul', { class: 'list' }, files.files.map((f) => h('li', {},
        h('a', { href: `/ui/downloads/${f.name}`, download: f.name }, f.name), ` ${size(f.size)}, SHA-256 `, h('code', {}, f.sha256))))),
    ],
    offered.length === 0 && h('p', {}, 'This hub offers no programs to download. Ask the people who run it for the ', h('code', {}, 'kedge'), ' command line.'),
    h('p', {}, 'Then log in:'), command(loginCommand(files)),
  ];
}

function making() {
  const org = session.orgs.find((o) => o.role === 'admin') || session.orgs[0];
  return h('p', {}, 'A workspace is a Kubernetes API of its own. ',
    org ? ['Make one in ', h('a', { href: `/ui/orgs/${org.uuid}` }, named(org.name)), '.'] : [h('a', { href: '/ui/' }, 'Make an organization first'), ', or ask somebody to add you to theirs.']);
}

function using() {
  const org = session.orgs.find((o) => o.workspaces.length > 0);
  if (!org) return h('p', {}, 'As soon as there is a workspace, this is all:');
  const w = org.workspaces[0];
  return [
    h('p', {}, 'In ', h('a', { href: `/ui/orgs/${org.uuid}/workspaces/${w.uuid}` }, named(w.name)), ', for example:'),
    command(`kedge kubeconfig --merge --use --org ${org.uuid} --workspace ${w.uuid}`), command('kubectl get namespaces'),
  ];
}

function inviting() {
  const org = session.orgs.find((o) => o.role === 'admin' && !o.personal) || session.orgs.find((o) => o.role === 'admin');
  return h('p', {}, org
    ? ['Add people to ', h('a', { href: `/ui/orgs/${org.uuid}/members` }, named(org.name)), ', or invite somebody who has never been here by a link.']
    : 'Admins of an organization add people to it, and invite others by a link.');
}
