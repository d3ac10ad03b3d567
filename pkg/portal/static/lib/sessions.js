// What a list of the sessions of a person shows.

import { named } from './dom.js';
import { badge, browser, moment } from './format.js';

export const sessionColumns = [
  { title: 'Where', cell: (/** @type {Schema<'Session'>} */ s) => [named(s.client === 'portal' ? browser(s.description) : s.description, 'unknown'), ' ', s.current && badge('ok', 'this one')] },
  { title: 'Kind', cell: (/** @type {Schema<'Session'>} */ s) => (s.client === 'cli' ? 'Command line' : 'Browser') },
  { title: 'Signed in', cell: (/** @type {Schema<'Session'>} */ s) => moment(s.createdAt) },
  { title: 'Last used', cell: (/** @type {Schema<'Session'>} */ s) => moment(s.lastUsedAt) },
  { title: 'Ends unless used', cell: (/** @type {Schema<'Session'>} */ s) => moment(s.expiresAt) },
];
