// Dates and states in the reader's words.

import { h } from './dom.js';

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

/** @param {string|null|undefined} at */
export function date(at) {
  return time(at, day);
}

/** @param {string|null|undefined} at */
export function moment(at) {
  return time(at, minute);
}

/**
 * @param {string|null|undefined} at
 * @param {Intl.DateTimeFormat} format
 */
function time(at, format) {
  if (!at) return '';
  const parsed = new Date(at);
  return h('time', { datetime: at, title: full.format(parsed) }, format.format(parsed));
}

/** Says how long it is until a time. @param {string} at */
export function left(at) {
  const hours = (new Date(at).getTime() - Date.now()) / 3600e3;
  if (hours <= 0) return 'now';
  if (hours < 1) return `${Math.max(1, Math.round(hours * 60))} min left`;
  if (hours < 48) return `${Math.round(hours)} h left`;
  return `${Math.floor(hours / 24)} days left`;
}

/** Reports whether people are warned of the end of a token of a bot. @param {string|undefined} at */
export function soon(at) {
  return !!at && new Date(at).getTime() - Date.now() < 14 * 24 * 3600e3;
}

const week = 7 * 24 * 3600e3;

/** Says when something ends: in words from a week before. @param {string|null|undefined} at */
export function end(at) {
  if (!at) return '';
  const ms = new Date(at).getTime() - Date.now();
  if (ms >= week) return moment(at);
  return h('time', { datetime: at, title: full.format(new Date(at)) }, badge('warn', endsIn(ms / 3600e3)));
}

/** @param {number} hours */
function endsIn(hours) {
  if (hours <= 0) return 'ended';
  if (hours < 2) return `ends in ${Math.max(1, Math.floor(hours * 60))} min`;
  if (hours < 48) return `ends in ${Math.floor(hours)} hours`;
  return `ends in ${Math.floor(hours / 24)} days`;
}

const phases = { Ready: ['ok', 'Ready'], Progressing: ['busy', 'In progress'], Terminating: ['warn busy', 'Being removed'] };

/** Returns the phase of an object as a badge. @param {string} phase */
export function phaseBadge(phase) {
  const [kind, text] = phases[/** @type {keyof phases} */ (phase)] || ['', phase || 'Unknown'];
  return badge(kind, text);
}

const states = { Enabled: ['ok', 'Enabled'], Enabling: ['busy', 'Enabling'], ClaimsPending: ['warn', 'Claims to answer'], Failing: ['bad', 'Failing'], Disabled: ['', 'Not enabled'] };

/** Returns the state of a provider in a Workspace as a badge. @param {string} [state] */
export function stateBadge(state) {
  const [kind, text] = states[/** @type {keyof states} */ (state)] || ['', state || 'Unknown'];
  return badge(kind, text);
}

/**
 * @param {string} kind
 * @param {string} text
 */
export function badge(kind, text) {
  return h('span', { class: `badge ${kind}` }, text);
}

/** Returns "created {date} by {first admin}". @param {string} at @param {string} by */
export function origin(at, by) {
  return h('span', { class: 'second' }, 'created ', date(at), ' by ', h('bdi', {}, by || 'somebody unknown'));
}

/** @param {string} word */
export function capital(word) {
  return word ? word[0].toUpperCase() + word.slice(1) : word;
}

/** Shows the characters that change the direction of what follows, in a text that quotes names. @param {string} text */
export function visible(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

/** Turns the message of an error into a sentence. @param {string} message */
export function sentence(message) {
  const text = capital(visible(message.trim()));
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Says in a few words which browser a user agent is. @param {string} agent */
export function browser(agent) {
  const name = /(Edg|OPR|Firefox|HeadlessChrome|Chrome|Safari)\/\d+/.exec(agent);
  if (!name) return agent;
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux)/.exec(agent);
  return name[0].replace('Edg/', 'Edge/').replace('OPR/', 'Opera/').replace('/', ' ') + (system ? ` on ${system[1]}` : '');
}

/** Returns a number of bytes as people read it. @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  let n = bytes;
  for (; n >= 1024 && unit < units.length - 1; unit += 1) n /= 1024;
  return `${n < 10 && unit ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/**
 * Says what is used of a limit; – before it was measured.
 * @param {{used: number, limit: number}|undefined} amount
 * @param {(n: number) => string} format
 */
export function used(amount, format) {
  if (!amount) return '–';
  return amount.limit ? `${format(amount.used)} of ${format(amount.limit)}` : format(amount.used);
}

/** A time as an input of type datetime-local has it, in the reader's time zone. @param {string|undefined} at */
export function local(at) {
  if (!at) return '';
  const d = new Date(at);
  return new Date(d.getTime() - d.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
}

/** A time that was typed, as the API has it; null for none. @param {string} typed */
export function endOf(typed) {
  return typed ? new Date(typed).toISOString().replace(/\.\d+Z$/, 'Z') : null;
}
