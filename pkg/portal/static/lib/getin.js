// How to get the kedge command line, and the commands that log it in to this hub.

import { h } from './dom.js';

/**
 * @typedef {{name: string, size: number, sha256: string, os?: string, arch?: string}} Program
 * @typedef {{ca: boolean, files: Program[]}} Files is what the hub offers to download; ca says that it has a CA that no computer knows
 */

/** @type {Promise<Files>|null} */
let asked = null;

/** Returns what the hub offers to download. @returns {Promise<Files>} */
export function filesOfHub() {
  asked ||= fetch('/ui/downloads/index.json', { method: 'GET' }).then((r) => r.json()).catch(() => {
    asked = null;
    return { ca: false, files: [] };
  });
  return asked;
}

/** The name under which the browser saves the CA of the hub. */
const caFile = 'kedge-ca.crt';

/** The command that logs in. @param {Files} files @param {string} [more] */
export function loginCommand(files, more = '') {
  return `kedge login --server ${location.origin}${files.ca ? ` --ca-file ${caFile}` : ''}${more}`;
}

/** A link that saves the CA. */
export function caLink() {
  return h('a', { href: '/ui/ca.crt', download: caFile }, caFile);
}

/** Says where the CA of the commands comes from. @param {Files} files */
export function caNote(files) {
  return files.ca && h('p', {}, 'This hub has a certificate of its own CA. Save ', caLink(), ' first, and run the command in its folder.');
}

/** The program for a platform. @param {Files} files @param {string} os @param {string} arch */
function programFor(files, os, arch) {
  return files.files.find((f) => f.os === os && f.arch === arch && f.name.endsWith('.tar.gz'));
}

/**
 * The commands that download the program for Linux or macOS, verify and unpack it. There are none if the hub has no program.
 * @param {Files} files @param {string} os @param {string} arch
 */
export function installCommands(files, os, arch) {
  const p = programFor(files, os, arch);
  if (!p) return [];
  const at = `${location.origin}/ui/downloads/${p.name}`;
  if (os === 'windows') {
    return [`curl.exe -fsSLO ${files.ca ? `--cacert ${caFile} ` : ''}${at}`, `(Get-FileHash ${p.name}).Hash -eq '${p.sha256}'`, `tar xzf ${p.name}`, '$env:Path = "$PWD;$env:Path"'];
  }
  const sum = os === 'darwin' ? 'shasum -a 256 -c' : 'sha256sum -c';
  return [`curl -fsSLO ${files.ca ? `--cacert ${caFile} ` : ''}${at}`, `echo "${p.sha256}  ${p.name}" | ${sum}`, `tar xzf ${p.name}`, 'export PATH="$PWD:$PATH"'];
}

/** The platforms of the programs, that of this computer first. @param {Files} files @returns {Array<{os: string, arch: string, title: string}>} */
export function platforms(files) {
  const agent = navigator.userAgent;
  const here = /Windows/.test(agent) ? 'windows' : /Mac OS/.test(agent) ? 'darwin' : 'linux';
  const titles = /** @type {Record<string, string>} */ ({ linux: 'Linux', darwin: 'macOS', windows: 'Windows' });
  const chips = /** @type {Record<string, string>} */ ({ amd64: 'Intel or AMD', arm64: 'ARM' });
  return files.files.filter((f) => f.os && f.arch && programFor(files, f.os, f.arch) === f)
    .map((f) => ({ os: f.os || '', arch: f.arch || '', title: `${titles[f.os || '']}, ${f.os === 'darwin' && f.arch === 'arm64' ? 'Apple silicon' : chips[f.arch || '']}` }))
    .sort((a, b) => Number(b.os === here) - Number(a.os === here) || a.os.localeCompare(b.os) || (a.os === 'darwin' ? -1 : 1) * a.arch.localeCompare(b.arch));
}
