// The formatting of the portal's files. The types are checked by tsc.

import stylistic from '@stylistic/eslint-plugin';

export default [{
  files: ['pkg/portal/static/**/*.js'],
  linterOptions: { reportUnusedDisableDirectives: 'error' },
  plugins: { '@stylistic': stylistic },
  rules: {
    ...stylistic.configs.customize({ indent: 2, quotes: 'single', semi: true, braceStyle: '1tbs', arrowParens: true, commaDangle: 'always-multiline' }).rules,
    '@stylistic/max-len': ['error', { code: 260 }],
    '@stylistic/max-statements-per-line': ['error', { max: 3 }],
    '@stylistic/quote-props': ['error', 'as-needed'],
    'no-var': 'error',
    'prefer-const': 'error',
    eqeqeq: 'error',
  },
}];
