// Lints of the page and of its tests. Formatting is left to prettier.
import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';

const unused = { argsIgnorePattern: '^_', varsIgnorePattern: '^_' };

export default ts.config(
  { ignores: ['dist/**', '**/node_modules/**'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs['flat/recommended'],
  ...svelte.configs['flat/prettier'],
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      eqeqeq: 'error',
      '@typescript-eslint/no-unused-vars': ['error', unused],
      // `{' '}` and `{'\n'}` keep spaces that the compiler would remove.
      'svelte/no-useless-mustaches': 'off',
      // Maps are plain, because a reactive map costs too much for each tick. The stores replace
      // the `$state.raw` value that is shown.
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
);
